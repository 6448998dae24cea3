# SPDX-License-Identifier: Apache-2.0
"""What every engine is: the two stages, their queues and files, in the event loop of the run's own process.

    Engine
    ├── LocalEngine    plays and scores here (`local_engine.py`)
    └── RayEngine      has actors of a Ray cluster play and score (`ray_engine/`)

An engine says where plays and scorers are; what becomes of what they make is the same everywhere, and is here: only
this process writes to the journals, and nothing is handed on before it is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from reward_kit.config_models import PipelineConfig
from reward_kit.errors import RewardKitError, StorageError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.first_verdicts import FirstVerdicts
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
from reward_kit.generation.client import ModelClient
from reward_kit.generation.play import Play
from reward_kit.generation.stack import ModelStack, open_models
from reward_kit.models import Rollout
from reward_kit.scoring.rewards import Rewards
from reward_kit.scoring.scorers import Scorer
from reward_kit.scoring.step_rewards import StepRewards
from reward_kit.storage.journal import Journal
from reward_kit.storage.line_writer import LineWriter
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["End", "Engine", "Reporter", "background", "interrupts"]

_ON_THE_WAY = 1024
"""Items that may wait for the score stage before generation waits for it."""
_READ_AHEAD = 64
"""The same where items are only read from a file: more of them would be of no use, and push each other out of the
processor's caches."""
_GRACE_SECONDS = 10.0
"""How long work in flight may go on after a stop was asked for."""
_UNHEARD_SECONDS = 1.0
"""How long the loop may leave an interruption unheard before the next one ends the run by force."""
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


class Engine(ABC):
    """Runs the two stages until nothing is owed."""

    def __init__(
        self,
        config: PipelineConfig,
        directory: Path,
        counters: RunCounters,
        reporter: Reporter | None,
        vocabulary: Vocabulary = RUN,
        *,
        budget: Budget | None = None,
        beside: ProjectedFile | None = None,
        reward: Callable[..., Any] | None = None,
    ) -> None:
        """Take what both stages share. `beside` the rollouts, a second file may tell them in other columns.

        `reward` is one that was given as an object; an engine that plays elsewhere has to take it there.
        """
        self._beside = beside
        self._given_reward = reward
        self._vocabulary = vocabulary
        self._config = config
        self._directory = directory
        self._counters = counters
        self._reporter = reporter
        self._budget = budget

    # ── what engines differ in ───────────────────────────────────────────────────────────────────────────────────────

    def opened(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Within it the engine can be used."""
        return contextlib.nullcontext()

    @contextlib.asynccontextmanager
    async def open_models(
        self, client: ModelClient | None, turns: TurnJournal | None, known: Callable[[str, int], Rollout | None]
    ) -> AsyncIterator[ModelStack]:
        """What the generate stage plays with, here; `client` stands in for what the config names.

        `turns` is the file of an agent's turns, and `known` finds its episodes of earlier entries of the run.
        """
        async with open_models(self._config, client, self._budget) as models:
            if self._config.agent is None or turns is None:
                yield models
                return
            from reward_kit.execution.agents import open_episodes  # here: most runs have no agent

            playing = open_episodes(
                self._config, self._config.agent, models, turns, self._counters, self._budget, known
            )  # fmt: skip
            async with playing as episodes:
                yield episodes

    @abstractmethod
    def open_scorer(self, reward: Rewards, at_hand: int) -> contextlib.AbstractAsyncContextManager[Scorer]:
        """What the score stage judges with, where so many rollouts wait to be judged already."""

    @property
    def at_a_time(self) -> int:
        """Samples that are worth having in flight: an agent's tools take time in which nobody is asked."""
        agent = self._config.agent
        return self._config.generation.api_params.max_concurrent_requests if agent is None else agent.concurrency

    # ── what all engines do ──────────────────────────────────────────────────────────────────────────────────────────

    async def run(  # noqa: PLR0913 - the parts of a run
        self, works: Iterator[Work], models: ModelStack, rollouts: Journal, results: Journal | None,
        reward: Rewards | None, *, blocking: bool, backlog: bool, keep: Sequence[Callable[[], None]] = (),
        keep_going: bool = True,
    ) -> End:  # fmt: skip
        """Work through `works`; without a reward, only generate. Raises the error that stopped the run, if one did.

        Each of `keep` is called now and then, to put down what no journal holds. Unless it is to `keep_going`, the run
        ends where the first verdicts are all the same failure.
        """
        stop = Stop(self._counters)
        together = reward is not None and reward.judge_groups
        at_once = None if together else models.draws_at_once
        ahead = self.at_a_time if models.play is not None else 0
        queue = WorkQueue(works, blocking=blocking, backlog=backlog, at_once=at_once, ahead=ahead)
        play = models.play
        journals = [journal for journal in (rollouts, results) if journal is not None]
        async with contextlib.AsyncExitStack() as around:
            around.enter_context(interrupts(stop))
            await around.enter_async_context(background(self._keep_on_disk(journals, keep, stop)))
            if self._reporter is not None:
                await around.enter_async_context(background(self._reporter.watch(self._counters)))
            if reward is None or results is None:
                writer = LineWriter(rollouts.samples)
                made = rollouts_output(rollouts, writer, self._counters, None, groups=False, beside=self._beside)
                await self._generate(queue, play, made, None, stop)
            else:
                await self._both(queue, play, rollouts, results, reward, stop, keep_going=keep_going)
        if stop.error is not None:
            raise stop.error
        if stop.reason is not None:
            return End(stop.status, stop.reason)
        return End("stopped", queue.closed) if queue.closed else End("finished", None)

    async def _both(
        self, queue: WorkQueue, play: Play | None, rollouts: Journal, results: Journal, reward: Rewards, stop: Stop,
        *, keep_going: bool,
    ) -> None:  # fmt: skip
        handover = Handover(_ON_THE_WAY if play is not None else _READ_AHEAD)

        def end_early(reason: str) -> None:
            stop.request(reason, status="failing")
            handover.drop()

        first = None if keep_going else FirstVerdicts(end_early, reward)
        writer = LineWriter(results.samples, self._vocabulary.result_row)
        made = rollouts_output(
            rollouts, writer, self._counters, handover, groups=reward.judge_groups, beside=self._beside
        )
        at_hand = self._counters.unjudged if play is None else 1
        async with self.open_scorer(reward, at_hand) as scorer:
            self._counters.sandbox = scorer.sandbox
            self._counters.judge = scorer.judge_use
            judged = records_output(results, writer.result_line, self._counters, first)
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
        width = self.at_a_time if play is not None else 1
        coroutines = [generate(queue, play, made, outbox, self._counters, stop) for _ in range(width)]
        try:
            await run_stage_tasks(coroutines, stop, grace=_GRACE_SECONDS)
        finally:
            _flush(made, stop)

    @staticmethod
    async def _score(handover: Handover, scorer: Scorer, judged: Output[Judged], queue: WorkQueue, stop: Stop) -> None:
        steps = StepRewards()
        coroutines = [score(handover, scorer, judged, queue, steps) for _ in range(scorer.concurrency)]
        try:
            await run_stage_tasks(coroutines, stop, grace=_GRACE_SECONDS)
        finally:
            _flush(judged, stop)

    @staticmethod
    async def _keep_on_disk(journals: list[Journal], keep: Sequence[Callable[[], None]], stop: Stop) -> None:
        while not stop.requested.is_set():
            await asyncio.sleep(_SYNC_SECONDS)
            try:
                for journal in journals:
                    await asyncio.to_thread(journal.sync)
                for each in keep:
                    each()
            except StorageError as error:  # a later attempt would succeed and mean nothing: the pages are gone
                stop.request("error", error)


def _flush(output: Output[Any], stop: Stop) -> None:
    """Put down what the last turn made, whatever ended the stage."""
    try:
        output.flush()
    except RewardKitError as error:
        stop.request("error", error)


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have `work` done meanwhile; cancelled in the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.contextmanager
def interrupts(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for a gentle stop; asked twice, the run ends where it stands: KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()
    in_a_hurry = False
    unheard: float | None = None

    def interrupted() -> None:
        nonlocal in_a_hurry, unheard
        unheard = None
        if stop.requested.is_set() and running is not None:
            in_a_hurry = True
            running.cancel()
        stop.request("interrupted")

    def arrived(*_: object) -> None:
        """A handler that runs in the middle of anything: something may block the loop, and then it must do alone."""
        nonlocal unheard
        if unheard is not None and time.monotonic() - unheard > _UNHEARD_SECONDS:
            raise KeyboardInterrupt
        unheard = unheard or time.monotonic()
        loop.call_soon_threadsafe(interrupted)

    previous = {number: signal.signal(number, arrived) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except asyncio.CancelledError:
        if in_a_hurry:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
