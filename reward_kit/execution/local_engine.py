"""The local engine: both stages on this machine, in one event loop and its worker processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from reward_kit.config_models import PipelineConfig
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.owed import Work
from reward_kit.execution.result import RunStatus
from reward_kit.execution.scorers import Reward, open_scorer
from reward_kit.execution.stages import Feed, ItemQueue, Stop, generate, score, work_with_hands
from reward_kit.generation.play import Play
from reward_kit.storage.journal import Journal

__all__ = ["End", "LocalEngine", "Reporter"]

_QUEUE_SIZE = 1024
"""Rollouts that may wait for the score stage; with it, memory is bounded."""
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
    """How the stages ended."""

    status: RunStatus
    reason: str | None


class LocalEngine:
    """Runs the stages here."""

    def __init__(
        self, config: PipelineConfig, directory: Path, counters: RunCounters, reporter: Reporter | None
    ) -> None:
        """Take what both stages share."""
        self._config = config
        self._directory = directory
        self._counters = counters
        self._reporter = reporter

    async def run(
        self, works: Iterator[Work], play: Play | None, rollouts: Journal, results: Journal | None,
        reward: Reward | None, *, blocking: bool,
    ) -> End:  # fmt: skip
        """Work through `works`; without a reward, only generate. Raises the error that stopped the run, if one did."""
        stop = Stop(self._counters)
        feed = Feed(works, blocking=blocking)
        journals = [journal for journal in (rollouts, results) if journal is not None]
        async with contextlib.AsyncExitStack() as around:
            around.enter_context(_interrupts(stop))
            await around.enter_async_context(_background(self._keep_on_disk(journals)))
            if self._reporter is not None:
                await around.enter_async_context(_background(self._reporter.watch(self._counters)))
            if reward is None or results is None:
                await self._generate(feed, play, rollouts, None, stop, groups=False)
            else:
                await self._both(feed, play, rollouts, results, reward, stop)
        if stop.error is not None:
            raise stop.error
        if stop.reason is not None:
            return End("interrupted", stop.reason)
        return End("stopped", feed.closed) if feed.closed else End("finished", None)

    async def _both(
        self, feed: Feed, play: Play | None, rollouts: Journal, results: Journal, reward: Reward, stop: Stop
    ) -> None:
        queue: ItemQueue = asyncio.Queue(_QUEUE_SIZE)
        async with open_scorer(reward, self._config.reward, self._directory) as scorer:
            hands = [score(queue, scorer, results, self._counters) for _ in range(scorer.concurrency)]
            scoring = asyncio.create_task(work_with_hands(hands, stop, grace=_GRACE_SECONDS))
            try:
                await self._generate(feed, play, rollouts, queue, stop, groups=reward.judges_groups)
                await self._let_go(queue, len(hands), scoring)
                await scoring
            except BaseException:
                scoring.cancel()  # nobody will tell it that nothing more comes
                await asyncio.gather(scoring, return_exceptions=True)
                raise

    async def _generate(
        self, feed: Feed, play: Play | None, rollouts: Journal, outbox: ItemQueue | None, stop: Stop, *, groups: bool
    ) -> None:
        width = self._config.generation.api_params.max_concurrent_requests if play is not None else 1
        hands = [generate(feed, play, rollouts, outbox, self._counters, stop, groups=groups) for _ in range(width)]
        await work_with_hands(hands, stop, grace=_GRACE_SECONDS)

    @staticmethod
    async def _let_go(queue: ItemQueue, hands: int, scoring: asyncio.Task[None]) -> None:
        """Tell each scoring hand that nothing more comes, unless they have all gone."""
        for _ in range(hands):
            put = asyncio.create_task(queue.put(None))
            await asyncio.wait({put, scoring}, return_when=asyncio.FIRST_COMPLETED)
            if scoring.done():
                put.cancel()
                return

    @staticmethod
    async def _keep_on_disk(journals: list[Journal]) -> None:
        while True:
            await asyncio.sleep(_SYNC_SECONDS)
            for journal in journals:
                await asyncio.to_thread(journal.sync)


@contextlib.asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.contextmanager
def _interrupts(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for a gentle stop; asked twice, the run is cancelled where it stands."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()

    def interrupted() -> None:
        if stop.requested.is_set() and running is not None:
            running.cancel()
        stop.request("interrupted")

    signals = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.getsignal(number) for number in signals]
    for number in signals:
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number, handler in zip(signals, previous, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
