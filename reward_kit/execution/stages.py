"""The two stages. Each takes a stream, puts what it makes on disk, and only then hands it on.

    Work ──▶ generate ══▶ rollouts.jsonl ──▶ queue ──▶ score ══▶ results.jsonl
              `width` hands                            `concurrency` hands

A hand deals with one sample (generate) or one rollout or group (score) at a time. The queue between the stages is
bounded, so memory is too, and a slow reward slows generation down instead of filling it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, NamedTuple

from reward_kit.errors import RewardKitError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.owed import Work
from reward_kit.execution.scorers import Scorer
from reward_kit.generation.budget import BudgetExhaustedError
from reward_kit.generation.play import Play
from reward_kit.models import Rollout
from reward_kit.storage.journal import Journal
from reward_kit.storage.tables import result_entry, rollout_entry

__all__ = ["Feed", "Item", "ItemQueue", "Stop", "generate", "score", "work_with_hands"]


class Item(NamedTuple):
    """What travels from generate to score: one rollout, or all rollouts of a sample."""

    rollouts: list[Rollout]
    content: str


ItemQueue = asyncio.Queue["Item | None"]
"""From generate to score; None means that nothing more will come."""


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

    def __init__(self, works: Iterator[Work], *, blocking: bool = False) -> None:
        """`blocking` sources (a remote dataset) are read in a thread, so that waiting for them stalls nobody."""
        self._works = works
        self._lock = asyncio.Lock() if blocking else None
        self.closed: str | None = None
        """Why nothing more is handed out although there was more, once that is so."""

    def close(self, reason: str) -> None:
        """Hand out nothing more. What was handed out is finished and scored as usual."""
        self.closed = self.closed or reason

    async def take(self) -> Work | None:
        """The next piece of work, or None when there is none left."""
        if self.closed is not None:
            return None
        if self._lock is None:
            return next(self._works, None)
        async with self._lock:
            return await asyncio.to_thread(next, self._works, None)


async def generate(
    feed: Feed, play: Play | None, journal: Journal, outbox: ItemQueue | None, counters: RunCounters, stop: Stop,
    *, groups: bool,
) -> None:  # fmt: skip
    """One hand of the generate stage: take work, have its owed draws played, journal them, hand them on."""
    while not stop.requested.is_set() and (work := await feed.take()) is not None:
        if work.draws and play is not None:
            counters.in_flight += 1
            try:
                drawn = await play(work.sample, work.draws)
            except BudgetExhaustedError as refusal:
                feed.close(str(refusal))
                return
            finally:
                counters.in_flight -= 1
            _journal_rollouts(journal, drawn, work.content, counters)
            work.rollouts.extend(drawn)
        elif work.new:
            _journal_rollouts(journal, work.new, work.content, counters)
        if outbox is not None and work.rollouts:
            await _hand_on(work, outbox, groups=groups)


def _journal_rollouts(journal: Journal, rollouts: Sequence[Rollout], content: str, counters: RunCounters) -> None:
    journal.append([rollout_entry(rollout, content) for rollout in rollouts])
    for rollout in rollouts:
        counters.count_rollout(rollout)


async def _hand_on(work: Work, outbox: ItemQueue, *, groups: bool) -> None:
    if groups:
        ordered = sorted(work.rollouts, key=lambda rollout: rollout.response_index)
        await outbox.put(Item(ordered, work.content))
        return
    for rollout in work.rollouts:
        await outbox.put(Item([rollout], work.content))


async def score(inbox: ItemQueue, scorer: Scorer, journal: Journal, counters: RunCounters) -> None:
    """One hand of the score stage: take an item, have it judged, journal the verdicts."""
    while (item := await inbox.get()) is not None:
        answered = [rollout for rollout in item.rollouts if rollout.failure is None]
        verdicts = iter(await scorer.score(answered) if answered else [])
        judged = [(rollout, rollout.failure or next(verdicts)) for rollout in item.rollouts]
        journal.append([result_entry(rollout, item.content, verdict) for rollout, verdict in judged])
        for _, verdict in judged:
            counters.count_verdict(verdict)


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
        for task in [*tasks, stopped]:
            task.cancel()
        await asyncio.gather(*tasks, everyone, stopped, return_exceptions=True)


def _note_errors(tasks: Sequence[asyncio.Task[None]], stop: Stop) -> None:
    for task in (task for task in tasks if task.done()):
        error = RuntimeError("a hand was cancelled by nobody") if task.cancelled() else task.exception()
        if isinstance(error, RewardKitError):
            stop.request("error", error)
        elif error is not None:
            stop.request("error")  # the other stage must not wait for a stage that is gone
            raise error
