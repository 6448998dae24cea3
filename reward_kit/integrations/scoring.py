# SPDX-License-Identifier: Apache-2.0
"""Many completions judged at once, as trainers ask for it: one verdict each, in order, in bounded time.

    rollouts ─▶ worker processes ─▶ verdicts                a synchronous reward: each call has its own deadline
    rollouts ─▶ tasks on the background loop ─▶ verdicts    an asynchronous one

How a reward is called, and what a call comes to, is as in a run (`reward_kit.scoring`). What is the trainer's own is
here: the way onto the background loop and back, the deadline of a whole step, and lists in and lists out.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from reward_kit.errors import ConfigError, RewardTimeoutError
from reward_kit.models import Failure, Rollout, Verdict
from reward_kit.reward_call import OnInvalid, RewardCall
from reward_kit.scoring import defaults
from reward_kit.scoring.on_the_loop import OnTheLoop
from reward_kit.scoring.outcomes import judged_by
from reward_kit.scoring.worker_call import WorkerCall, verdicts
from reward_kit.utils.event_loop import background_loop
from reward_kit.utils.per_process import PerProcess
from reward_kit.workers import WorkerPool

__all__ = ["Scoring", "hint_of"]

Groups: TypeAlias = Sequence[Sequence[Rollout]]
"""The rollouts of each call: one, or for a reward that judges groups all those of a sample."""

_CLOSE_SECONDS = 10.0
_SETTING = "timeout"
"""What a trainer raises to give a call more time."""


class Scoring:
    """Judges lists of rollouts with one reward, each alone or in the groups that a batch reward wants.

    It pickles if the reward does; its workers stay behind.

    A synchronous reward runs in worker processes (`workers`: how many; 0: in this process, without protection), an
    asynchronous one on the background loop. A completion that takes more than `timeout` seconds, or that is not judged
    when the list has taken `step_timeout`, is a failure. A result with `is_score_valid=False` is one too, unless
    `on_invalid` is "score" and it names no error: then its score counts. What is no failure of an item, such as a
    missing package or key, is raised.
    """

    def __init__(
        self,
        call: RewardCall,
        *,
        workers: int | None = None,
        timeout: float | None = None,
        step_timeout: float = defaults.STEP_SECONDS,
        on_invalid: OnInvalid = "failure",
    ) -> None:
        if on_invalid != call.on_invalid:
            call = RewardCall(call.reward, call.given_params, on_invalid)
        self._call = call
        self._workers = workers
        self._timeout = timeout
        self._step_timeout = step_timeout
        self._seconds = min(timeout or call.timeout or defaults.TIMEOUT_SECONDS, step_timeout)
        self._size = _default_workers() if workers is None else workers
        self._pool = PerProcess(partial(_Pool, call, self._size, self._seconds), _Pool.close)
        if self._size < 0 or not self._seconds > 0 or not step_timeout > 0:
            raise ConfigError(
                f"{workers!r} workers, a timeout of {timeout!r} s and a step_timeout of {step_timeout!r} s: "
                "the times must be above zero, and the workers not below."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        options: dict[str, Any] = {
            "workers": self._workers,
            "timeout": self._timeout,
            "step_timeout": self._step_timeout,
            "on_invalid": self._call.on_invalid,
        }
        return partial(Scoring, **options), (self._call,)

    def score(self, groups: Groups, *, here: bool = False) -> list[Sequence[Verdict]]:
        """The verdicts on each group of rollouts; `here`: in this process, because what they hold cannot leave it."""
        if (here or not self._size) and not self._call.is_async:
            return [verdicts(self._call, rollouts) for rollouts in groups]
        return asyncio.run_coroutine_threadsafe(self._score(groups), background_loop()).result()

    async def score_async(self, groups: Groups, *, here: bool = False) -> list[Sequence[Verdict]]:
        """The same, for an event loop."""
        if (here or not self._size) and not self._call.is_async:
            return await asyncio.to_thread(self.score, groups, here=True)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._score(groups), background_loop()))

    def close(self) -> None:
        """End the workers now; the next list starts others."""
        self._pool.close()

    # -- on the background loop

    async def _score(self, groups: Groups) -> list[Sequence[Verdict]]:
        ends = time.monotonic() + self._step_timeout
        judge = self._on_the_loop if self._call.is_async else self._by_workers
        judged = await judge(groups, ends)
        return [
            self._late(rollouts) if found is None else found for found, rollouts in zip(judged, groups, strict=True)
        ]

    async def _by_workers(self, groups: Groups, ends: float) -> list[Sequence[Verdict] | None]:
        pool = self._pool.get()
        await pool.started
        return await judged_by(pool.workers, self._call, groups, until=ends, setting=_SETTING)

    async def _on_the_loop(self, groups: Groups, ends: float) -> list[Sequence[Verdict] | None]:
        caller = OnTheLoop(self._call, self._seconds, self._call.concurrency or defaults.CONCURRENCY, {}, _SETTING)
        try:
            return await caller.judge_all(groups, until=ends)
        finally:
            caller.close()

    def _late(self, rollouts: Sequence[Rollout]) -> list[Verdict]:
        name, seconds = self._call.name, self._step_timeout
        late = RewardTimeoutError(f"{name!r} was not done when the step had taken {seconds:g} s. Raise step_timeout.")
        return [Failure.of(late, "score")] * len(rollouts)


def hint_of(failure: Failure) -> str:
    """What a trainer's log adds to a failure that only means that a result said `is_score_valid=False`."""
    if failure.invalid_score is None:
        return ""
    return " If the reward marks wrong answers with is_score_valid=False, use on_invalid='score'."


class _Pool:
    """A worker pool on the background loop, which it is made on."""

    def __init__(self, call: RewardCall, size: int, seconds: float) -> None:
        reward = partial(WorkerCall, call.reward, call.given_params, shared=True, on_invalid=call.on_invalid)
        self.workers = WorkerPool(reward, size=size, timeout=seconds, name=call.name, first=size)
        self._loop = asyncio.get_running_loop()
        self.started = self._loop.create_task(self.workers.start())

    def close(self) -> None:
        """End the workers, and wait until they are gone, unless the caller's own loop would be kept waiting."""
        if not self._loop.is_running():
            return
        closing = asyncio.run_coroutine_threadsafe(self.workers.close(), self._loop)
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # garbage may be collected on any thread
            closing.result(timeout=_CLOSE_SECONDS)


def _default_workers() -> int:
    """A share of the cores this process may use, where several ranks train on one machine; never a great many."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    return max(1, min(defaults.MOST_TRAINER_WORKERS, cores // max(1, ranks)))
