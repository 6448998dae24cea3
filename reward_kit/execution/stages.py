# SPDX-License-Identifier: Apache-2.0
"""The two stages. Each takes a stream, puts what it makes on disk, and only then hands it on.

    Work ──▶ generate ──▶ Rollout ══▶ rollouts.jsonl ──▶ handover ──▶ score ──▶ Record ══▶ results.jsonl
              `width` tasks                                           `concurrency` tasks

Each task deals with one sample (generate) or one rollout or group (score) at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

from reward_kit.datasets import content_digest
from reward_kit.errors import RewardError, RewardKitError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.first_verdicts import FirstVerdicts
from reward_kit.execution.owed import Work
from reward_kit.execution.queues import Handover, Item, WorkQueue
from reward_kit.execution.result import RunStatus
from reward_kit.generation.budget import BudgetExhaustedError
from reward_kit.generation.play import Play
from reward_kit.generation.usage import summed
from reward_kit.models import EvaluateResult, Failure, MetricResult, Record, Rollout, Verdict
from reward_kit.redaction import blot_keys, echoes
from reward_kit.scoring.failure_log import FailureLog
from reward_kit.scoring.scorers import Scorer
from reward_kit.scoring.step_rewards import StepRewards
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Line
from reward_kit.storage.line_writer import LineWriter
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.utils.batcher import Batcher
from reward_kit.utils.tasks import end
from reward_kit.utils.trusted import trusted

__all__ = [
    "Judged",
    "Made",
    "Output",
    "Stop",
    "generate",
    "record_of",
    "records_output",
    "rollouts_output",
    "run_stage_tasks",
    "score",
]  # fmt: skip

T = TypeVar("T")


class Stop:
    """The one place where a run's early end is declared. The first reason given stands."""

    def __init__(self, counters: RunCounters) -> None:
        """Begin with no reason to stop. Once there is one, `counters` holds it too, so that progress shows it."""
        self.requested = asyncio.Event()
        self.reason: str | None = None
        self.error: RewardKitError | None = None
        self.status: RunStatus = "interrupted"
        self._counters = counters

    def request(self, reason: str, error: RewardKitError | None = None, status: RunStatus = "interrupted") -> None:
        """Take no more work; what is in flight may finish briefly. The run ends with this `status`."""
        if not self.requested.is_set():
            self.reason, self.error, self.status = reason, error, status
            self._counters.stopping = reason
            self.requested.set()


# ── what a stage makes ───────────────────────────────────────────────────────────────────────────────────────────────


class Output(Generic[T]):
    """Where a stage puts what it makes: into its journal, and only then where the next stage finds it.

    This is the one place that keeps the promise "on disk before anyone downstream sees it". What the stage makes in one
    turn of the event loop is written in one go; `on_disk` says when.
    """

    def __init__(
        self,
        journal: Journal,
        lines: Callable[[list[T]], list[Entry | Line]],
        hand_on: Callable[[list[T]], None],
    ) -> None:
        """Append the `lines` of things to `journal`; `hand_on` is given the things once their lines are on disk."""
        self._journal, self._lines, self._hand_on = journal, lines, hand_on
        batcher = Batcher(self._write)
        self.put = batcher.add
        """Take what was made."""
        self.on_disk = batcher.dealt
        """Come back when all that was put is on disk."""
        self.flush = batcher.flush
        """Write now what was put."""

    def _write(self, things: list[T]) -> None:
        if lines := self._lines(things):
            self._journal.append(lines)
        self._hand_on(things)


Made: TypeAlias = tuple[Work, Sequence[Rollout]]
"""A piece of work, and what the generate stage made for it."""

Judged: TypeAlias = tuple[Record, str]
"""A record, and the digest of its sample's content."""


def rollouts_output(
    journal: Journal,
    writer: LineWriter,
    counters: RunCounters,
    outbox: Handover | None,
    *,
    groups: bool,
    beside: ProjectedFile | None = None,
) -> Output[Made]:
    """Of the generate stage. Without an `outbox` nothing is handed on; with `groups`, a sample's rollouts together.

    `beside` the journal, a second file may tell the rollouts in other columns; then these are what is handed on.
    """

    def lines(made: list[Made]) -> list[Entry | Line]:
        return [
            writer.rollout_line(rollout, work.content)
            for work, rollouts in made
            for rollout in chain(work.retold, rollouts)
        ]

    def hand_on(made: list[Made]) -> None:
        if beside is not None:
            _write_beside(made, beside)
        for work, rollouts in made:
            for rollout in rollouts:
                counters.count_rollout(rollout, work.before.get(rollout.response_index))
            if outbox is None or not work.rollouts or work.regrouped:
                continue
            if groups:
                outbox.give(Item(sorted(work.rollouts, key=lambda rollout: rollout.response_index), work.content))
                continue
            for rollout in work.rollouts:
                outbox.give(Item([rollout], work.content))

    return Output(journal, lines, hand_on)


def _write_beside(made: list[Made], beside: ProjectedFile) -> None:
    """Write the new rollouts to the second file, and let what it has of them be what is scored."""
    projected = [[beside.project(rollout) for rollout in chain(work.retold, rollouts)] for work, rollouts in made]
    beside.append(chain.from_iterable(projected))
    for (work, _), new in zip(made, projected, strict=True):
        fresh = {rollout.response_index: rollout for rollout, _ in new}
        work.rollouts = [fresh.get(old.response_index) or beside.project(old).rollout for old in work.rollouts]
        if work.rollouts:
            work.content = content_digest(work.rollouts[0].sample)


def records_output(
    journal: Journal,
    line: Callable[[Record, str], Entry | Line],
    counters: RunCounters,
    first: FirstVerdicts | None = None,
) -> Output[Judged]:
    """Of the score stage. `line` writes a record, with the digest of its sample's content, in the run's vocabulary.

    `first` looks at the first verdicts.
    """

    def lines(judged: list[Judged]) -> list[Entry | Line]:
        return [line(record, content) for record, content in judged]

    log = FailureLog()

    def count(judged: list[Judged]) -> None:
        for record, _ in judged:
            counters.count_verdict(record.verdict)
            if record.failure is not None:
                log.note(record.failure)
            if first is not None and not first.done:
                first.see(record)

    return Output(journal, lines, count)


# ── the stages ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def generate(
    queue: WorkQueue,
    play: Play | None,
    output: Output[Made],
    outbox: Handover | None,
    counters: RunCounters,
    stop: Stop,
) -> None:
    """One task of the generate stage: take work, have the missing answers generated, write down what was made."""
    while not stop.requested.is_set() and (work := await queue.take()) is not None:
        made: Sequence[Rollout] = work.new
        played = bool(work.draws) and play is not None and queue.closed is None
        if played and play is not None:
            counters.in_flight += 1
            try:
                made = await play(work.sample, work.draws)
                if work.before:
                    made = [_with_earlier(rollout, work.before.get(rollout.response_index)) for rollout in made]
            except BudgetExhaustedError as refusal:
                queue.close(str(refusal))
            else:
                work.rollouts.extend(made)
                work.regrouped = False
            finally:
                counters.in_flight -= 1
        output.put((work, made))
        if played:  # a crash costs the requests in flight, and never the answers before them as well
            await output.on_disk()
        if outbox is not None and outbox.is_full:
            await outbox.room()


def _with_earlier(rollout: Rollout, before: Rollout | None) -> Rollout:
    """The rollout with what earlier entries paid for it in vain. An episode counts that itself."""
    if before is None or rollout.steps is not None or before.usage is None:
        return rollout
    used = [before.usage, *([] if rollout.usage is None or rollout.cached else [rollout.usage])]
    costs = [before.cost, *([] if rollout.usage is None else [rollout.cost])]
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if len(known) == len(costs) else None
    return rollout.model_copy(update={"usage": summed(used), "cost": cost})


async def score(
    inbox: Handover, scorer: Scorer, output: Output[Judged], queue: WorkQueue, steps: StepRewards | None = None
) -> None:
    """One task of the score stage: take an item, have it judged, write down the records.

    What a judge is needed for and cannot be afforded stays owed, and nothing more is generated. `steps` looks at the
    rewards of steps, for all tasks together.
    """
    steps = steps or StepRewards()
    is_paid = scorer.is_paid
    while (item := inbox.take_at_once() or await inbox.take()) is not None:
        rollouts, content = item
        answered = [rollout for rollout in rollouts if rollout.failure is None]
        try:
            verdicts = iter(await scorer.score(answered) if answered else ())
        except BudgetExhaustedError as refusal:
            queue.close(str(refusal))
            continue
        for rollout in rollouts:
            verdict = rollout.failure or next(verdicts)
            if rollout.steps is not None:
                verdict = steps.checked(rollout, verdict)
            output.put((record_of(rollout, verdict), content))
        if is_paid:  # a crash costs the replies in flight, and never those before them as well
            await output.on_disk()


def record_of(rollout: Rollout, verdict: Verdict) -> Record:
    """The rollout with what was said of it."""
    if not isinstance(verdict, EvaluateResult):
        return _failed(rollout=rollout, failure=verdict)
    values = verdict.__dict__
    says = values["reason"] or values["metrics"] or values["error"] or values["step_outputs"]
    if not says and type(verdict) is EvaluateResult:
        return _judged(rollout=rollout, result=verdict)
    if (said := blot_keys(verdict.reason or "")) != (verdict.reason or ""):
        verdict = verdict.model_copy(update={"reason": said})  # a message, here and in the file alike
    if _tells_key(verdict):
        return _failed(rollout=rollout, failure=Failure.of(RewardError(_TELLS_KEY), "score"))
    return _judged(rollout=rollout, result=verdict)


def _tells_key(verdict: EvaluateResult) -> bool:
    return echoes(_texts_of(verdict).encode(errors="surrogatepass"))


def _texts_of(verdict: EvaluateResult) -> str:
    """All texts that a verdict holds. To print it whole would take as long as much of the rest of a record."""
    metrics = verdict.metrics
    kinds = {type(verdict), *map(type, metrics.values())}
    if verdict.step_outputs is not None or not kinds <= {EvaluateResult, MetricResult}:
        return repr(verdict)
    texts = [verdict.reason or "", verdict.error or "", *metrics]
    return "\n".join([*texts, *[metric.reason for metric in metrics.values()]])


_TELLS_KEY = (
    "The verdict holds a credential that this process sent, or gave to the reward, in its metrics or steps. "
    "Nothing of it is kept. Correct the reward, so that it tells nobody."
)


_judged, _failed = trusted(Record), trusted(Record)


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def run_stage_tasks(coroutines: Sequence[Coroutine[Any, Any, None]], stop: Stop, *, grace: float) -> None:
    """Run the tasks of a stage to their end. After a request to stop they have `grace` seconds, then are cancelled.

    An error of ours in one task stops the others the same gentle way; anything else is a bug and is raised at once.
    """
    tasks = [asyncio.create_task(each) for each in coroutines]
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
        error = RuntimeError("a task of a stage was cancelled by nobody") if task.cancelled() else task.exception()
        if isinstance(error, RewardKitError):
            stop.request("error", error)
        elif error is not None:
            stop.request("error")  # the other stage must not wait for a stage that is gone
            raise error
