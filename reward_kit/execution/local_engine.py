# SPDX-License-Identifier: Apache-2.0
"""The local engine: both stages on this machine, in one event loop and its worker processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from reward_kit.config_models import PipelineConfig
from reward_kit.errors import RewardKitError, StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.interrupts import alongside, interrupts
from reward_kit.execution.owed import Work
from reward_kit.execution.queues import Handover, WorkQueue
from reward_kit.execution.result import RunStatus
from reward_kit.execution.stages import (
    Judged,
    Made,
    Output,
    Stop,
    generate,
    records_output,
    rollouts_output,
    run_stage_tasks,
    score,
)
from reward_kit.execution.vocabulary import RUN, Vocabulary
from reward_kit.generation.budget import Budget
from reward_kit.generation.play import Play
from reward_kit.generation.stack import ModelStack
from reward_kit.scoring.rewards import Rewards
from reward_kit.scoring.scorers import Scorer, open_rewards
from reward_kit.scoring.step_rewards import StepRewards
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter
from reward_kit.storage.projected_file import ProjectedFile

__all__ = ["End", "LocalEngine", "Reporter"]

_ON_THE_WAY = 1024
"""Items that may wait for the score stage before generation waits for it."""
_READ_AHEAD = 64
"""The same where items are only read from a file: more of them would be of no use, and push each other out of the
processor's caches."""
_GRACE_SECONDS = 10.0
"""How long work in flight may go on after a stop was asked for."""
_SYNC_SECONDS = 5.0
"""How often the journals are put on the disk itself, against power loss. (Against kill -9 every write is safe.)"""


class Reporter(Protocol):
    """Shows progress while a run goes on."""

    async def watch(self, counters: RunCounters) -> None:
        """Show the counters until cancelled."""
        ...


class End(NamedTuple):
    """How a run's stages ended: its status, and the reason where it did not finish."""

    status: RunStatus
    reason: str | None


class LocalEngine:
    """Runs the two stages in this process, with worker processes for synchronous rewards, until nothing is owed."""

    def __init__(
        self,
        config: PipelineConfig,
        directory: Path,
        counters: RunCounters,
        reporter: Reporter | None,
        vocabulary: Vocabulary = RUN,
        *,
        budget: Budget | None = None,
        keep: Sequence[Callable[[], None]] = (),
        beside: ProjectedFile | None = None,
    ) -> None:
        """Take what both stages share. Each of `keep` is called now and then, to put down what no journal holds.

        `beside` the rollouts, a second file may tell them in other columns.
        """
        self._beside = beside
        self._vocabulary = vocabulary
        self._config = config
        self._directory = directory
        self._counters = counters
        self._reporter = reporter
        self._budget = budget
        self._keep = keep

    async def run(
        self, works: Iterator[Work], models: ModelStack, rollouts: Journal, results: Journal | None,
        reward: Rewards | None, *, blocking: bool, backlog: bool,
    ) -> End:  # fmt: skip
        """Work through `works`; without a reward, only generate. Raises the error that stopped the run, if one did."""
        stop = Stop(self._counters)
        together = reward is not None and reward.judge_groups
        at_once = None if together else models.draws_at_once
        ahead = self._config.generation.api_params.max_concurrent_requests if models.play is not None else 0
        queue = WorkQueue(works, blocking=blocking, backlog=backlog, at_once=at_once, ahead=ahead)
        play = models.play
        journals = [journal for journal in (rollouts, results) if journal is not None]
        async with contextlib.AsyncExitStack() as around:
            around.enter_context(interrupts(stop))
            await around.enter_async_context(alongside(self._keep_on_disk(journals, stop)))
            if self._reporter is not None:
                await around.enter_async_context(alongside(self._reporter.watch(self._counters)))
            if reward is None or results is None:
                made = rollouts_output(rollouts, LineWriter(), self._counters, None, groups=False, beside=self._beside)
                await self._generate(queue, play, made, None, stop)
            else:
                await self._both(queue, play, rollouts, results, reward, stop)
        if stop.error is not None:
            raise stop.error
        if stop.reason is not None:
            return End("interrupted", stop.reason)
        return End("stopped", queue.closed) if queue.closed else End("finished", None)

    async def _both(
        self, queue: WorkQueue, play: Play | None, rollouts: Journal, results: Journal, reward: Rewards, stop: Stop
    ) -> None:
        handover = Handover(_ON_THE_WAY if play is not None else _READ_AHEAD)
        writer = LineWriter()
        made = rollouts_output(
            rollouts, writer, self._counters, handover, groups=reward.judge_groups, beside=self._beside
        )
        at_hand = self._counters.unjudged if play is None else 1
        async with open_rewards(reward, self._config, self._directory, self._budget, at_hand=at_hand) as scorer:
            self._counters.sandbox = scorer.sandbox
            self._counters.judge = scorer.judge_use
            judged = records_output(results, self._vocabulary.result_line or writer.result_line, self._counters)
            scoring = asyncio.create_task(self._score(handover, scorer, judged, queue, stop))
            generating = asyncio.create_task(self._generate(queue, play, made, handover, stop))
            try:
                # Scoring ends first only when something is wrong; then nobody may wait for it to take more.
                await asyncio.wait({generating, scoring}, return_when=asyncio.FIRST_COMPLETED)
                if scoring.done():
                    scoring.result()
                await generating
                handover.end()
                await scoring
            finally:
                generating.cancel()
                scoring.cancel()
                await asyncio.gather(generating, scoring, return_exceptions=True)
                self._counters.judge = scorer.judge_use

    async def _generate(
        self, queue: WorkQueue, play: Play | None, made: Output[Made], outbox: Handover | None, stop: Stop
    ) -> None:
        width = self._at_a_time if play is not None else 1
        coroutines = [generate(queue, play, made, outbox, self._counters, stop) for _ in range(width)]
        try:
            await run_stage_tasks(coroutines, stop, grace=_GRACE_SECONDS)
        finally:
            _flush(made, stop)

    @property
    def _at_a_time(self) -> int:
        """Samples that are worth having in flight: an agent's tools take time in which nobody is asked."""
        agent = self._config.agent
        return self._config.generation.api_params.max_concurrent_requests if agent is None else agent.concurrency

    @staticmethod
    async def _score(handover: Handover, scorer: Scorer, judged: Output[Judged], queue: WorkQueue, stop: Stop) -> None:
        steps = StepRewards()
        coroutines = [score(handover, scorer, judged, queue, steps) for _ in range(scorer.concurrency)]
        try:
            await run_stage_tasks(coroutines, stop, grace=_GRACE_SECONDS)
        finally:
            _flush(judged, stop)

    async def _keep_on_disk(self, journals: list[Journal], stop: Stop) -> None:
        while not stop.requested.is_set():
            await asyncio.sleep(_SYNC_SECONDS)
            try:
                for journal in journals:
                    await asyncio.to_thread(journal.sync)
                for keep in self._keep:
                    keep()
            except StorageError as error:  # a later attempt would succeed and mean nothing: the pages are gone
                stop.request("error", error)


def _flush(output: Output[Any], stop: Stop) -> None:
    """Put down what the last turn made, whatever ended the stage."""
    try:
        output.flush()
    except RewardKitError as error:
        stop.request("error", error)
