"""The two stages. Each takes a stream, puts what it makes on disk, and only then hands it on.

    Work ──▶ generate ══▶ rollouts.jsonl ──▶ handover ──▶ score ══▶ results.jsonl
              `width` hands                               `concurrency` hands

A hand deals with one sample (generate) or one rollout or group (score) at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from reward_kit.errors import RewardKitError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.handover import Handover, Item
from reward_kit.execution.owed import Work
from reward_kit.execution.scorers import Scorer, Verdict
from reward_kit.execution.settling import Settling
from reward_kit.execution.vocabulary import Vocabulary
from reward_kit.generation.budget import BudgetExhaustedError
from reward_kit.generation.play import Play
from reward_kit.models import Rollout
from reward_kit.storage.journal import Journal
from reward_kit.storage.sample_text import SampleText
from reward_kit.storage.tables import rollout_line
from reward_kit.utils.end_of_turn import EndOfTurn
from reward_kit.utils.tasks import end

__all__ = ["Feed", "Rollouts", "Stop", "Verdicts", "generate", "score", "work_with_hands"]


class Stop:
    """The one place where a run's early end is declared. The first reason given stands."""

    def __init__(self, counters: RunCounters) -> None:
        """Nothing has stopped yet."""
        self.requested = asyncio.Event()
        self.reason: str | None = None
        self.error: RewardKitError | None = None
        self._counters = counters

    def request(self, reason: str, error: RewardKitError | None = None) -> None:
        """Take no more work; what is in flight may finish briefly."""
        if not self.requested.is_set():
            self.reason, self.error = reason, error
            self._counters.stopping = reason
            self.requested.set()


class Feed:
    """Hands out work, one piece at a time, in order."""

    def __init__(
        self,
        works: Iterator[Work],
        *,
        blocking: bool = False,
        backlog: bool = False,
        at_once: Callable[[], int] | None = None,
        ahead: int = 0,
    ) -> None:
        """`blocking` sources (a remote dataset) are read in a thread, so that waiting for them stalls nobody.

        From others, up to `ahead` pieces are read while nothing else is to be done, so that the next request need not
        wait for its row.

        With a `backlog`, rollouts that an earlier entry left unjudged are handed out even after `close`. More draws of
        a sample than can be asked for `at_once` are handed out apart, so that each is on disk as soon as it comes.
        """
        self._works = works
        self._at_once = at_once
        self._parts: deque[Work] = deque()
        self._ready: deque[Work] = deque()
        self._ahead = 0 if blocking else ahead
        self._reading = EndOfTurn(self._read_ahead)
        self._blocking = blocking
        self._lock = asyncio.Lock()
        self._backlog = backlog
        self.closed: str | None = None
        """Why nothing more is generated although there was more, once that is so."""

    def close(self, reason: str) -> None:
        """Have nothing more generated. What was generated is scored as usual."""
        self.closed = self.closed or reason

    async def take(self) -> Work | None:
        """The next piece of work, or None when there is none left."""
        while self.closed is None or self._backlog:
            if self._parts:
                work: Work | None = self._parts.popleft()
            else:
                work = self._first_part(await self._read_elsewhere() if self._blocking else self._read_here())
            if work is None or self.closed is None or (work.rollouts and not work.regrouped):
                return work
            await asyncio.sleep(0)  # others may have something to do while the rest is looked through
        return None

    def _first_part(self, work: Work | None) -> Work | None:
        """The work; where it has more draws than can be asked for at once, a part of it, and the rest for the next."""
        most = self._at_once() if self._at_once is not None else None
        if work is not None and most is not None and len(work.draws) > most:
            work.draws, *rest = (work.draws[start : start + most] for start in range(0, len(work.draws), most))
            self._parts.extend(Work(work.sample, work.content, draws) for draws in rest)
        return work

    def _read_here(self) -> Work | None:
        if self._ahead:
            self._reading.ask()
        return self._ready.popleft() if self._ready else next(self._works, None)

    async def _read_elsewhere(self) -> Work | None:
        async with self._lock:
            return await asyncio.to_thread(next, self._works, None)

    def _read_ahead(self) -> None:
        try:
            while len(self._ready) < self._ahead and (work := next(self._works, None)) is not None:
                self._ready.append(work)
        except RewardKitError as error:  # a bad row: told when its turn comes
            self._works = _raising(error)


def _raising(error: RewardKitError) -> Iterator[Work]:
    raise error
    yield  # makes it an iterator, which raises when it is asked


class Rollouts:
    """Where the generate stage puts what it has made: into the journal, and only then into the handover."""

    def __init__(self, journal: Journal, outbox: Handover | None, counters: RunCounters, *, groups: bool) -> None:
        """Without an outbox nothing is handed on; with `groups`, all rollouts of a sample go together."""
        self._journal, self._outbox, self._counters, self._groups = journal, outbox, counters, groups
        self._settling: Settling[tuple[Work, Sequence[Rollout]]] = Settling(self._deal)
        self.settle = self._settling.settle

    def put(self, work: Work, made: Sequence[Rollout]) -> None:
        """Take what was made for `work`."""
        self._settling.add((work, made))

    @property
    def are_behind(self) -> bool:
        """Whether so much waits to be scored that nothing more should be made."""
        return self._outbox is not None and self._outbox.is_full

    async def room(self) -> None:
        """Come back when there is room for more."""
        if self._outbox is not None:
            await self._outbox.room()

    def _deal(self, settled: list[tuple[Work, Sequence[Rollout]]]) -> None:
        texts = [SampleText(work.sample, work.content) for work, _ in settled]
        lines = [
            rollout_line(made, text) for text, (_, rollouts) in zip(texts, settled, strict=True) for made in rollouts
        ]
        if lines:
            self._journal.append(lines)
        for text, (work, made) in zip(texts, settled, strict=True):
            for rollout in made:
                self._counters.count_rollout(rollout)
            if self._outbox is not None and work.rollouts and not work.regrouped:
                self._hand_on(work.rollouts, text, self._outbox)

    def _hand_on(self, rollouts: list[Rollout], text: SampleText, outbox: Handover) -> None:
        if self._groups:
            outbox.give(Item(sorted(rollouts, key=lambda rollout: rollout.response_index), text))
            return
        for rollout in rollouts:
            outbox.give(Item([rollout], text))


async def generate(feed: Feed, play: Play | None, rollouts: Rollouts, counters: RunCounters, stop: Stop) -> None:
    """One hand of the generate stage: take work, have its owed draws played, put down what was made."""
    while not stop.requested.is_set() and (work := await feed.take()) is not None:
        made: Sequence[Rollout] = work.new
        if work.draws and play is not None and feed.closed is None:
            counters.in_flight += 1
            try:
                made = await play(work.sample, work.draws)
            except BudgetExhaustedError as refusal:
                feed.close(str(refusal))
            else:
                work.rollouts.extend(made)
                work.regrouped = False
            finally:
                counters.in_flight -= 1
        rollouts.put(work, made)
        if rollouts.are_behind:
            await rollouts.room()


class Verdicts:
    """Where the score stage puts what it has said: into the journal."""

    def __init__(self, journal: Journal, counters: RunCounters, vocabulary: Vocabulary) -> None:
        """Journal verdicts in the words of `vocabulary`, and count them."""
        self._journal, self._counters = journal, counters
        self._line = vocabulary.result_line
        self._settling: Settling[tuple[Rollout, SampleText, Verdict]] = Settling(self._deal)
        self.settle = self._settling.settle

    def put(self, rollout: Rollout, text: SampleText, verdict: Verdict) -> None:
        """Take the verdict on a rollout, whose sample's text is `text`."""
        self._settling.add((rollout, text, verdict))

    def _deal(self, settled: list[tuple[Rollout, SampleText, Verdict]]) -> None:
        self._journal.append([self._line(rollout, text, verdict) for rollout, text, verdict in settled])
        for _, _, verdict in settled:
            self._counters.count_verdict(verdict)


async def score(inbox: Handover, scorer: Scorer, verdicts: Verdicts, feed: Feed) -> None:
    """One hand of the score stage: take an item, have it judged, put down the verdicts.

    What a judge is needed for and cannot be afforded stays owed, and nothing more is generated.
    """
    while (item := inbox.take_at_once() or await inbox.take()) is not None:
        rollouts, text = item
        answered = [rollout for rollout in rollouts if rollout.failure is None]
        try:
            said = iter(await scorer.score(answered) if answered else ())
        except BudgetExhaustedError as refusal:
            feed.close(str(refusal))
            continue
        for rollout in rollouts:
            verdicts.put(rollout, text, rollout.failure or next(said))


async def work_with_hands(hands: Sequence[Coroutine[Any, Any, None]], stop: Stop, *, grace: float) -> None:
    """Let all hands work to the end. Once a stop is requested they get `grace` seconds more, then are cancelled.

    An error of ours in one hand stops the others the same gentle way; anything else is a bug and is raised at once.
    """
    tasks = [asyncio.create_task(hand) for hand in hands]
    everyone: asyncio.Future[Any] = asyncio.gather(*tasks)
    stopped: asyncio.Future[Any] = asyncio.create_task(stop.requested.wait())
    try:
        await asyncio.wait({everyone, stopped}, return_when=asyncio.FIRST_COMPLETED)
        _note_errors(tasks, stop)
        if unfinished := [task for task in tasks if not task.done()]:
            await asyncio.wait(unfinished, timeout=grace)
            _note_errors(tasks, stop)
    finally:
        end(tasks)
        stopped.cancel()
        await asyncio.gather(*tasks, everyone, stopped, return_exceptions=True)


def _note_errors(tasks: Sequence[asyncio.Task[None]], stop: Stop) -> None:
    for task in (task for task in tasks if task.done()):
        error = RuntimeError("a hand was cancelled by nobody") if task.cancelled() else task.exception()
        if isinstance(error, RewardKitError):
            stop.request("error", error)
        elif error is not None:
            stop.request("error")  # the other stage must not wait for a stage that is gone
            raise error
