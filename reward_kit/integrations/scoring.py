"""Many completions judged at once, as trainers ask for it: one verdict each, in order, in bounded time.

    payloads ─▶ worker processes ─▶ verdicts                a synchronous reward: each payload has its own deadline
    payloads ─▶ tasks on the background loop ─▶ verdicts    an asynchronous one

A completion that hangs or takes its worker down costs itself only. Where a reward has been seen to be quick, several
payloads travel as one call, so that it pays little for its protection; when such a parcel is lost, each of its payloads
is judged again by itself.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from reward_kit.errors import ConfigError, ItemError, RewardError, RewardKitError, RewardTimeoutError
from reward_kit.models import EvaluateResult
from reward_kit.reward_call import Payload, RewardCall, own, verdict_or_raise
from reward_kit.utils.event_loop import background_loop
from reward_kit.utils.per_process import PerProcess
from reward_kit.workers import Died, Done, Outcome, Raised, TimedOut, WorkerPool

__all__ = ["DEFAULT_STEP_TIMEOUT", "Scoring", "Verdict"]

DEFAULT_TIMEOUT = 60.0
"""Seconds one completion may take where neither the caller nor the reward says otherwise; as in a run."""
DEFAULT_STEP_TIMEOUT = 600.0
"""Seconds one step may take: well under the half hour after which a stalled rank ends a distributed training."""
_DEFAULT_CONCURRENCY = 256
_MOST_WORKERS = 8
_CLOSE_SECONDS = 10.0
_SLOW = 0.002
"""Seconds a payload from which on each travels alone: the message no longer matters, and the deadline does."""
_PARCEL_SECONDS = 0.001
"""What a parcel is worth: enough to be worth its message, and little enough to be shared out evenly."""
_PARCELS_A_WORKER = 4
_LARGEST_PARCEL = 16


class Verdict(NamedTuple):
    """What became of one completion, light enough to travel between processes by the thousand."""

    score: float | None
    """None: it could not be judged; `error` says why."""
    reason: str | None = None
    metrics: dict[str, float] = {}  # noqa: RUF012 - never changed
    """The score of each metric, by name."""
    error: str | None = None

    @classmethod
    def of(cls, result: EvaluateResult) -> Verdict:
        """The result of a reward that judged."""
        return cls(result.score, result.reason, {name: metric.score for name, metric in result.metrics.items()})

    @classmethod
    def failed(cls, error: object) -> Verdict:
        """No verdict, and why."""
        return cls(None, error=str(error))


# ── one payload ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _size(payload: Payload) -> int:
    """How many completions the payload holds."""
    return len(payload["rollouts_messages"]) if "rollouts_messages" in payload else 1


def _judged(call: RewardCall, payload: Payload) -> list[Verdict]:
    """The verdicts on one payload: one, or one a completion of its group."""
    try:
        if call.mode == "batch":
            return [_checked(result, call) for result in call.judge_group(payload)]
        return [Verdict.of(call.judge(payload))]
    except ItemError as error:
        return [Verdict.failed(error)] * _size(payload)


async def _judged_async(call: RewardCall, payload: Payload) -> list[Verdict]:
    try:
        if call.mode == "batch":
            return [_checked(result, call) for result in await call.judge_group_async(payload)]
        return [Verdict.of(await call.judge_async(payload))]
    except ItemError as error:
        return [Verdict.failed(error)] * _size(payload)


def _checked(result: EvaluateResult, call: RewardCall) -> Verdict:
    try:
        return Verdict.of(verdict_or_raise(result, repr(call.name)))
    except RewardError as error:
        return Verdict.failed(error)


# ── in a worker process ──────────────────────────────────────────────────────────────────────────────────────────────


class _Refused(NamedTuple):
    """The reward cannot work at all: a package or a key is missing."""

    message: str


class _ParcelScorer:
    """Judges a parcel of payloads; the verdicts are plain tuples, which travel at half the cost."""

    def __init__(self, call: RewardCall) -> None:
        self._call = call

    def __call__(self, parcel: Sequence[Payload]) -> list[list[tuple[Any, ...]]] | _Refused:
        alone = len(parcel) == 1  # what was pickled together may share its parts
        try:
            return [
                [tuple(verdict) for verdict in _judged(self._call, payload if alone else own(payload))]
                for payload in parcel
            ]
        except RewardKitError as error:
            return _Refused(f"{type(error).__name__}: {error}")


# ── many payloads ────────────────────────────────────────────────────────────────────────────────────────────────────


class Scoring:
    """Judges lists of payloads with one reward. It pickles if the reward does; its workers stay behind.

    A synchronous reward runs in worker processes (`workers`: how many; 0: in this process, without protection), an
    asynchronous one on the background loop. A completion that takes more than `timeout` seconds, or that is not judged
    when the list has taken `step_timeout`, is a failure. What is no failure of an item, such as a missing package or
    key, is raised.
    """

    def __init__(
        self,
        call: RewardCall,
        *,
        workers: int | None = None,
        timeout: float | None = None,
        step_timeout: float = DEFAULT_STEP_TIMEOUT,
    ) -> None:
        self._call = call
        self._workers = workers
        self._timeout = timeout
        self._step_timeout = step_timeout
        self._seconds = min(timeout or call.timeout or DEFAULT_TIMEOUT, step_timeout)
        self._size = _default_workers() if workers is None else workers
        self._pool = PerProcess(partial(_Pool, call, self._size, self._seconds), _Pool.close)
        self._pace = _SLOW
        """Seconds that a payload took a worker in the last step."""
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
        }
        return partial(Scoring, **options), (self._call,)

    def score(self, payloads: Sequence[Payload], *, here: bool = False) -> list[list[Verdict]]:
        """The verdicts on each payload; `here`: in this process, because what they hold cannot leave it."""
        if (here or not self._size) and not self._call.is_async:
            return [_judged(self._call, own(payload)) for payload in payloads]
        return asyncio.run_coroutine_threadsafe(self._score(payloads), background_loop()).result()

    async def score_async(self, payloads: Sequence[Payload], *, here: bool = False) -> list[list[Verdict]]:
        """The same, for an event loop."""
        if (here or not self._size) and not self._call.is_async:
            return await asyncio.to_thread(self.score, payloads, here=True)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._score(payloads), background_loop()))

    def close(self) -> None:
        """End the workers now; the next list starts others."""
        self._pool.close()

    # -- on the background loop

    async def _score(self, payloads: Sequence[Payload]) -> list[list[Verdict]]:
        ends = time.monotonic() + self._step_timeout
        if not self._call.is_async:
            return await self._by_workers(payloads, ends)
        slots = asyncio.Semaphore(self._call.concurrency or _DEFAULT_CONCURRENCY)
        calls = [asyncio.ensure_future(self._on_the_loop(payload, slots)) for payload in payloads]
        await _finish(calls, ends)
        return [
            call.result() if _is_settled(call) else self._late(payload)
            for call, payload in zip(calls, payloads, strict=True)
        ]

    async def _by_workers(self, payloads: Sequence[Payload], ends: float) -> list[list[Verdict]]:
        pool = await self._open_pool()
        began = time.monotonic()
        size = self._parcel_size(len(payloads))
        parcels = [payloads[at : at + size] for at in range(0, len(payloads), size)]
        judged = [verdicts for parcel in await self._judge(pool, parcels, ends) for verdicts in parcel]
        self._pace = (time.monotonic() - began) * self._size / max(1, len(payloads))
        return judged

    def _parcel_size(self, payloads: int) -> int:
        if self._pace >= _SLOW:
            return 1
        worth = math.ceil(_PARCEL_SECONDS / self._pace)
        return max(1, min(worth, _LARGEST_PARCEL, payloads // (_PARCELS_A_WORKER * self._size)))

    async def _judge(
        self, pool: WorkerPool, parcels: Sequence[Sequence[Payload]], ends: float
    ) -> list[list[list[Verdict]]]:
        """The verdicts on each payload of each parcel. Those of a parcel that was lost are judged one by one."""
        calls = [pool.submit((parcel,), {}) for parcel in parcels[: self._size]]
        await asyncio.sleep(0)  # every worker has something to do while the rest is made ready
        calls += [pool.submit((parcel,), {}) for parcel in parcels[self._size :]]
        await _finish(calls, ends)
        judged = []
        for call, parcel in zip(calls, parcels, strict=True):
            outcome = call.result() if _is_settled(call) else None
            if len(parcel) > 1 and not isinstance(outcome, Done | None):
                alone = await self._judge(pool, [[payload] for payload in parcel], ends)
                judged.append([verdicts for (verdicts,) in alone])
            else:
                judged.append(self._verdicts(outcome, parcel))
        return judged

    def _late(self, payload: Payload) -> list[Verdict]:
        told = f"{self._call.name!r} was not done when the step had taken {self._step_timeout:g} s. Raise step_timeout."
        return [Verdict.failed(told)] * _size(payload)

    async def _on_the_loop(self, payload: Payload, slots: asyncio.Semaphore) -> list[Verdict]:
        async with slots:
            try:
                async with asyncio.timeout(self._seconds):
                    return await _judged_async(self._call, own(payload))
            except TimeoutError:
                return [Verdict.failed(self._too_slow())] * _size(payload)

    def _verdicts(self, outcome: Outcome | None, parcel: Sequence[Payload]) -> list[list[Verdict]]:
        match outcome:
            case None:
                return [self._late(payload) for payload in parcel]
            case Done(_Refused(message=message)):
                raise RewardKitError(message)
            case Done(judged):
                return [[Verdict(*each) for each in verdicts] for verdicts in judged]
        return [[Verdict.failed(self._error(outcome))] * _size(payload) for payload in parcel]

    def _error(self, outcome: Outcome) -> RewardError:
        match outcome:
            case TimedOut():
                return RewardTimeoutError(self._too_slow())
            case Raised(type=kind, message=message):
                return RewardError(f"{self._call.name!r} raised {kind}: {message}")
            case Died(reason=reason):
                return RewardError(f"{self._call.name!r} took its worker process down: it {reason}")
            case Done():
                raise AssertionError("a finished call is no error")

    def _too_slow(self) -> str:
        return f"{self._call.name!r} did not return within {self._seconds:g} s. Raise timeout if it needs longer."

    async def _open_pool(self) -> WorkerPool:
        pool = self._pool.get()
        await pool.started
        return pool.workers


async def _finish(calls: Sequence[asyncio.Future[Any]], ends: float) -> None:
    """Wait until all are done, the step's time is up, or nobody wants them any more; what is not done is cancelled."""
    try:
        if calls:
            await asyncio.wait(calls, timeout=max(0.0, ends - time.monotonic()))
    finally:
        for call in calls:
            call.cancel()


def _is_settled(call: asyncio.Future[Any]) -> bool:
    return call.done() and not call.cancelled()


class _Pool:
    """A worker pool on the background loop, which it is made on."""

    def __init__(self, call: RewardCall, size: int, seconds: float) -> None:
        self.workers = WorkerPool(partial(_ParcelScorer, call), size=size, timeout=seconds, name=call.name, first=size)
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
    return max(1, min(_MOST_WORKERS, cores // max(1, ranks)))
