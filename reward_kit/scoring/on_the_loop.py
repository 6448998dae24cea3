# SPDX-License-Identifier: Apache-2.0
"""Calling an asynchronous reward on the event loop: within its deadline, whatever it does to the task it runs in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reward_kit.errors import ItemError, RewardError, RewardTimeoutError
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.reward_call import RewardCall
from reward_kit.scoring.loop_watch import Blockage
from reward_kit.scoring.outcomes import too_slow
from reward_kit.scoring.worker_call import verdicts_async
from reward_kit.utils.deadlines import Deadlines
from reward_kit.utils.tasks import abandonable, end, is_ended, shrug_off

if TYPE_CHECKING:
    from reward_kit.generation.judge import JudgeUse
    from reward_kit.scoring.opened import Opened
    from reward_kit.scoring.worlds import Worlds

__all__ = ["OnTheLoop", "each_alone"]

_log = logging.getLogger(__name__)

_TURN_SECONDS = 0.002
"""That a task goes on with one call after the other before it lets others do something."""


class OnTheLoop:
    """Calls an asynchronous reward where we are."""

    def __init__(
        self,
        call: RewardCall,
        timeout: float,
        concurrency: int,
        resources: Mapping[str, Any],
        setting: str = "reward.timeout",
        worlds: Worlds | None = None,
        opened: Opened | None = None,
        *,
        owned: bool = False,
    ) -> None:
        """So many calls at a time, each within `timeout` seconds; `setting` is what would give it more.

        `worlds` opens what a reward that asks for an agent's world is handed with each rollout. `opened` is told which
        files the reward opens. `owned`: nobody else looks at the rollouts, so the reward may have them as they are.
        """
        self._opened = opened
        self._worlds = worlds
        self.concurrency = concurrency
        self.judge_use: JudgeUse | None = resources["judge"].use if "judge" in resources else None
        self.sandbox: str | None = resources["sandbox"].backend if "sandbox" in resources else None
        self.is_paid = self.judge_use is not None or call.is_remote
        self._call = call
        self._resources = resources
        self._timeout = timeout
        self._setting = setting
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(timeout)
        self._free = asyncio.Semaphore(concurrency)
        self._judging: dict[asyncio.Task[Any], Rollout] = {}
        self._groups = call.mode == "batch"
        self._owned = owned

    async def score(self, rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict per rollout, in their order: the reward is called in this process.

        To be called in a task of its own: it is cancelled at the deadline.
        """
        if not self._groups and len(rollouts) > 1:
            return await each_alone(self.score, rollouts)
        task = self._current_task()
        opened = self._opened
        if opened is not None:
            opened.here.join()
        free = self._free
        await free.acquire()  # `async with` would be two coroutines more for each call
        try:
            verdicts = await self._judge_within(task, rollouts)
        finally:
            free.release()
        if opened is not None and opened.here.has_news:
            opened.look()
        return verdicts

    def _current_task(self) -> asyncio.Task[Any]:
        task = asyncio.current_task(self._loop)  # a third of what it costs where it has to find the loop
        if task is None:
            raise AssertionError("scoring happens in a task")
        return task

    async def _judge_within(self, task: asyncio.Task[Any], rollouts: Sequence[Rollout]) -> Sequence[Verdict]:
        """One verdict per rollout of one call, within the time that a call may take."""
        self._deadlines.begin(task)
        self._judging[task] = rollouts[0]
        try:
            if self._worlds is None:
                judging = verdicts_async(self._call, rollouts, self._resources, owned=self._owned)
            else:
                judging = self._verdicts_in(self._worlds, rollouts)
            verdicts: Sequence[Verdict] = await abandonable(judging, lambda: self._deadlines.is_ignored_by(task))
        except asyncio.CancelledError:
            verdicts = [Failure.of(self._cancelled(task), "score")] * len(rollouts)
        except KeyboardInterrupt as error:
            if _is_a_signal(error):
                raise
            failure = Failure.of(RewardError(f"{self._call.name!r} raised KeyboardInterrupt"), "score")
            verdicts = [failure] * len(rollouts)
        finally:
            self._deadlines.end(task)
            self._judging.pop(task, None)
        if task.cancelling() and not is_ended(task):  # the reward cancelled the task that it runs in
            await shrug_off(task)
            return [Failure.of(self._cancelled_itself(), "score")] * len(rollouts)
        return verdicts

    async def judge_all(self, groups: Sequence[Sequence[Rollout]], *, until: float) -> list[Sequence[Verdict] | None]:
        """The verdicts on the rollouts of each call; None where there were none at the time `until` (monotonic).

        A task makes one call after the other as long as the reward awaits nothing; when it does, other tasks take
        the rest meanwhile. So a reward that never waits needs one task, and one that does has as many as calls.
        """
        judged: list[Sequence[Verdict] | None] = [None] * len(groups)
        left = list(reversed(range(len(groups))))

        async def take() -> None:
            task = self._current_task()
            async with self._free:
                began = self._loop.time()
                while left:
                    place = left.pop()
                    judged[place] = await self._judge_within(task, groups[place])
                    if self._loop.time() - began > _TURN_SECONDS:
                        await asyncio.sleep(0)
                        began = self._loop.time()

        tasks: list[asyncio.Task[None]] = []
        try:
            while left and len(tasks) < len(groups):
                tasks += [self._loop.create_task(take()) for _ in range(min(len(tasks) + 1, len(left)))]
                await asyncio.sleep(0)  # they begin, each until it has to wait
            if tasks:
                await asyncio.wait(tasks, timeout=max(0.0, until - time.monotonic()))
        finally:  # the time may be up, or nobody wants it any more
            end(task for task in tasks if not task.done())
        for task in tasks:
            if task.done() and not task.cancelled():
                task.result()  # raises what is no failure of an item
        return judged

    @property
    def has_room(self) -> bool:
        """Whether a call would begin at once."""
        return not self._free.locked()

    async def _verdicts_in(self, worlds: Worlds, rollouts: Sequence[Rollout]) -> list[Verdict]:
        try:
            async with worlds(rollouts[0]) as world:
                return await verdicts_async(self._call, rollouts, {**self._resources, "world": world})
        except ItemError as error:  # the world failed, or went another way: that is no verdict
            return [Failure.of(error, "score")] * len(rollouts)

    def close(self) -> None:
        """Stop the timer of the deadlines. Call it when nothing is judged any more."""
        self._deadlines.stop()

    def log_blockage(self, blockage: Blockage) -> None:
        """Say that the reward, if it is the one, keeps everybody waiting: with which answer, and where."""
        if blockage.task is None or not self._deadlines.is_in_a_call(blockage.task):
            return
        rollout = self._judging.get(blockage.task)
        answer = "" if rollout is None else f", judging answer {rollout.response_index} of sample {rollout.sample.id!r}"
        _log.warning(
            "%r has blocked everything else for %.0f s%s (%s). Make it a plain `def`, which runs in its own process "
            "and is ended after its timeout, or use `await` where it waits. To stop it now, press Ctrl-C, several "
            "times if needed.",
            self._call.name, blockage.seconds, answer, blockage.place,
        )  # fmt: skip

    def _cancelled(self, task: asyncio.Task[None]) -> RewardError:
        """What a cancellation means: the call was too slow, or it let one out; or it is meant for us, and goes on."""
        if self._deadlines.was_missed_by(task):
            return RewardTimeoutError(too_slow(self._call.name, self._timeout, self._setting))
        if is_ended(task):
            raise asyncio.CancelledError
        return self._cancelled_itself()

    def _cancelled_itself(self) -> RewardError:
        return RewardError(f"{self._call.name!r} was cancelled by its own code. Catch CancelledError there.")


async def each_alone(
    score: Callable[[Sequence[Rollout]], Awaitable[Sequence[Verdict]]], rollouts: Sequence[Rollout]
) -> Sequence[Verdict]:
    """A pointwise reward, given a group because another split's reward judges groups."""
    judged = await asyncio.gather(*(score([rollout]) for rollout in rollouts))
    return [verdict for verdicts in judged for verdict in verdicts]


def _is_a_signal(error: KeyboardInterrupt) -> bool:
    """Whether somebody pressed Ctrl-C: the run's own handler raised it, and not the reward."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "reward_kit.execution.engine"
