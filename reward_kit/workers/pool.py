# SPDX-License-Identifier: Apache-2.0
"""The pool: shares calls out to warm workers, keeps their deadlines, and replaces the ones that are lost.

    submit ─▶ pending ─▶ chunk ─▶ worker (one chunk at work, one queued behind it) ─▶ outcomes
                 ▲                  │
                 └── not begun ─────┘  it is killed, dies, or is stuck in a long call, or another has nothing to do

A chunk is worth a tenth of a second by what calls have taken so far, so that the cost of a message is shared
by many short calls, and a long call goes alone. In the end all workers are done at about the same time: one that has
nothing left is given half of what another has not begun.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from reward_kit.errors import ConfigError
from reward_kit.utils.closing import ClosedAfterwards
from reward_kit.workers.child import describe, encode
from reward_kit.workers.outcomes import Died, Done, Outcome, Raised, TimedOut
from reward_kit.workers.process import Launch, OutputLog, PendingCall, WorkerProcess

__all__ = ["WorkerPool"]

_log = logging.getLogger(__name__)

_CHUNK_SECONDS = 0.1
_MAX_CHUNK_CALLS = 1000
_MAX_CHUNK_BYTES = 1 << 20
_FIRST_GUESS = 0.01
_NEWS_WEIGHT = 0.3
_SLOW_SECONDS = 0.002
"""A call from which on each travels alone: its message no longer matters, and its deadline does."""
_PARCEL_SECONDS = 0.001
"""What a parcel is worth: enough to be worth its message, and little enough to be shared out evenly."""
_PARCELS_PER_WORKER = 4
_MAX_PARCEL_CALLS = 16
_WATCH_SECONDS = 0.05
_STUCK_SECONDS = 0.05
_STEAL_SECONDS = 0.001
_STARTUP_SECONDS = 120.0
_LAST_WORDS_SECONDS = 0.2
_GOODBYE_SECONDS = 1.0
_SILENCE_SECONDS = 10.0
_MAX_FAILED_STARTS = 3


class WorkerPool(ClosedAfterwards):
    """Up to `size` processes that each call what `factory` makes, one call at a time, each within `timeout` seconds.

    The factory travels by cloudpickle, so a lambda, a closure or a notebook's function will do; it runs once in each
    process, with this process's `sys.path` and working directory. Workers start as they are needed and are kept; the
    `first` ones, for which there is sure to be something to do, start together. Each may take `startup` seconds.

    A call costs itself at most, whatever it does: it may hang, exhaust memory, exit or crash. What it had not begun to
    do for others is done by another worker; what it did in the last few hundredths of a second may be done twice.

    Covered: processes a call leaves behind in its group are killed with the worker, and on Linux workers are killed
    with this process, even in the middle of a call. Not covered: a process that makes a session of its own; anything a
    call may do to files or the network. This is protection from accidents, not from attack.

    To be used on one event loop. `memory_mb` bounds what one worker may allocate (on Linux); what user code prints goes
    to `log_path`, or to this process's standard error.
    """

    def __init__(
        self,
        factory: Callable[[], Callable[..., Any]],
        *,
        size: int,
        timeout: float,
        memory_mb: int | None = None,
        log_path: Path | None = None,
        name: str = "reward",
        first: int = 1,
        startup: float | None = None,
    ) -> None:
        if size < 1 or not timeout > 0:
            raise ConfigError(f"A pool of {size!r} workers with a time-out of {timeout!r} s: both must be above zero.")
        self._factory = factory
        self._size = size
        self._timeout = timeout
        self._memory_mb = memory_mb
        self._log_path = log_path
        self._log: OutputLog | None = None
        self._name = name
        self._first = first
        self._startup = _STARTUP_SECONDS if startup is None else startup
        self._workers: list[WorkerProcess] = []
        self._funerals: set[asyncio.Task[None]] = set()
        self._pending: deque[PendingCall] = deque()
        self._seconds_a_call = _FIRST_GUESS
        self._failed_starts = 0
        self._dispatch_soon: asyncio.Handle | None = None
        self._watch_later: asyncio.TimerHandle | None = None
        self._refusal: Exception | None = RuntimeError("The worker pool is not started; use it in `async with`.")

    # ── for users ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Start the first workers, and wait until a factory has made its callable; a `ConfigError` says why not."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._launch = self._make_launch()
        self._refusal = None
        for _ in range(max(1, min(self._first, self._size))):
            self._hire()
        try:
            await self._opened
        except BaseException:
            await self.close()
            raise

    def submit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> asyncio.Future[Outcome]:
        """Queue a call. Cancelling the future drops a call that has not begun."""
        return self._submit((args, kwargs))

    async def submit_all(self, calls: Sequence[tuple[Any, ...]], *, until: float) -> list[Outcome | None]:
        """Run many calls, given by their arguments, and return the outcome of each, in order.

        What is not done at the time `until`, on the clock of `time.monotonic`, is None, and not begun any more. Where
        calls have been seen to be quick, several travel as one parcel, so that they pay little for their protection;
        when a parcel is lost, each of its calls is made again by itself. An object that several calls are given may be
        one object in the worker, too.
        """
        outcomes: list[Outcome | None] = [None] * len(calls)
        lost = await self._run_parcels(calls, range(len(calls)), self._parcel_size(len(calls)), outcomes, until)
        if lost:
            await self._run_parcels(calls, lost, 1, outcomes, until)
        return outcomes

    async def _run_parcels(
        self, calls: Sequence[tuple[Any, ...]], numbers: Sequence[int], size: int, outcomes: list[Outcome | None],
        until: float,
    ) -> list[int]:  # fmt: skip
        """Run these calls, `size` of them as one, and put down what each came to; those of lost parcels remain."""
        parcels = [numbers[start : start + size] for start in range(0, len(numbers), size)]
        futures: list[asyncio.Future[Outcome]] = []
        try:
            for parcel in parcels:
                if len(futures) == self._size:
                    await asyncio.sleep(0)  # every worker has something to do while the rest is made ready
                if len(parcel) == 1:
                    futures.append(self._submit((calls[parcel[0]], {})))
                else:
                    futures.append(self._submit(([calls[number] for number in parcel], None), len(parcel)))
            if futures:
                await asyncio.wait(futures, timeout=max(0.0, until - time.monotonic()))
        finally:
            for future in futures:
                future.cancel()  # which does nothing to those that are done
        return _unpacked(parcels, futures, outcomes)

    def _parcel_size(self, calls: int) -> int:
        if self._seconds_a_call >= _SLOW_SECONDS:
            return 1
        worth = math.ceil(_PARCEL_SECONDS / self._seconds_a_call)
        return max(1, min(worth, _MAX_PARCEL_CALLS, calls // (_PARCELS_PER_WORKER * self._size)))

    def _submit(self, what: tuple[Any, Any], calls: int = 1) -> asyncio.Future[Outcome]:
        if self._refusal is not None:
            raise self._refusal
        future: asyncio.Future[Outcome] = self._loop.create_future()
        try:
            payload = encode(what)
        except Exception as error:  # noqa: BLE001 - a named boundary: pickling runs the arguments' own code
            future.set_result(_unsendable(error))
            return future
        self._pending.append(PendingCall(payload, future, calls))
        if self._dispatch_soon is None:  # calls submitted in one breath are shared out together
            self._dispatch_soon = self._loop.call_soon(self._dispatch)
        return future

    async def call(self, *args: Any, **kwargs: Any) -> Outcome:
        """Have a worker make one call with these arguments. What became of it comes back, never an exception."""
        return await self.submit(args, kwargs)

    async def close(self) -> None:
        """End every worker and what it left behind. Calls without an outcome are cancelled."""
        self._stop(RuntimeError("The worker pool is closed; start another one."))
        workers, self._workers = self._workers, []
        try:
            await asyncio.gather(*map(_dismiss, workers), *self._funerals)
        finally:
            self._refuse_unfinished(workers)
            for worker in workers:
                worker.release()
            if self._log is not None:
                self._log.close()
                self._log = None

    # ── sharing out ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _dispatch(self) -> None:
        """Top up every worker that has less than a chunk left, then grow if calls are still waiting."""
        if self._dispatch_soon is not None:
            self._dispatch_soon.cancel()
            self._dispatch_soon = None
        worth = max(1, min(_MAX_CHUNK_CALLS, int(_CHUNK_SECONDS / self._seconds_a_call)))
        share = min(worth, math.ceil(len(self._pending) / self._size))
        for worker in sorted(self._workers, key=_backlog):
            if not worker.greeted or worker.stuck or _backlog(worker) >= worth or self._is_apart(worker):
                continue
            chunk = self._next_chunk(share) or ([] if worker.sent else self._from_another())
            if chunk:
                worker.send(chunk)
        for _ in range(min(len(self._pending), self._size - len(self._workers))):
            self._hire()
        self._watch()

    def _is_apart(self, worker: WorkerProcess) -> bool:
        """Whether the worker has a call that must be its only one, or would get one beside others."""
        if not worker.sent:
            return False
        first = worker.sent[0]
        return (first is not None and first.alone) or (bool(self._pending) and self._pending[0].alone)

    def _next_chunk(self, share: int) -> list[PendingCall]:
        chunk: list[PendingCall] = []
        room = _MAX_CHUNK_BYTES
        while self._pending and len(chunk) < share:
            call = self._pending[0]
            room -= len(call.payload)
            if chunk and (room < 0 or call.alone):
                break
            self._pending.popleft()
            if not call.future.done():
                chunk.append(call)
                if call.alone:
                    break
        return chunk

    def _from_another(self) -> list[PendingCall]:
        """Half of what the worker with the most calls has not begun, if that is worth a message."""
        longest = max(self._workers, key=_backlog)
        if _backlog(longest) * self._seconds_a_call < _STEAL_SECONDS:
            return []
        return longest.give_up_half()

    def _take_answers(self, worker: WorkerProcess, blobs: list[bytes], worked_ns: int) -> None:
        if not worker.greeted:
            self._greeted(worker, blobs[0])
            return
        if not worker.may_have_said(blobs):
            worker.cut_off_as_garbled()
            return
        if not worker.answered:
            worker.answered, self._failed_starts = True, 0
        worker.stuck, worker.quiet_since = False, None
        answered = [(worker.answer_for(), blob) for blob in blobs]
        if run := sum(1 if call is None else call.calls for call, blob in answered if blob):
            self._seconds_a_call += _NEWS_WEIGHT * (worked_ns / 1e9 / run - self._seconds_a_call)
        passed_over: list[PendingCall] = []
        for call, blob in answered:
            if call is not None and blob:
                call.settle(_outcome(blob))
            elif call is not None:
                passed_over.append(call)
        self._put_back(passed_over)
        self._dispatch()

    def _put_back(self, calls: Sequence[PendingCall]) -> None:
        self._pending.extendleft(reversed(calls))

    # ── workers come ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _make_launch(self) -> Launch:
        if sys.platform == "win32":
            raise ConfigError("Worker processes need Linux or macOS; on Windows, run inside WSL.")
        import cloudpickle  # type: ignore[import-untyped]

        try:
            factory = cloudpickle.dumps(self._factory, 5)
        except Exception as error:
            raise ConfigError(
                f"The {self._name} {self._factory!r} cannot be sent to a worker ({type(error).__name__}: {error}). "
                "Create locks, connections and clients inside the function instead of capturing them."
            ) from error
        if self._log_path is not None:
            self._log = OutputLog(self._log_path)
        output = None if self._log is None else self._log.descriptor
        return Launch(self._name, factory, list(sys.path), os.getcwd(), self._memory_mb, output)

    def _hire(self) -> None:
        """Start one more worker process, unless there are enough or the pool has given up."""
        if self._refusal is not None or len(self._workers) >= self._size:
            return
        try:
            self._workers.append(WorkerProcess(self._launch, self._take_answers, self._lost))
        except OSError as error:
            self._start_failed(f"could not be started: {error}", None)
        self._watch()

    def _greeted(self, worker: WorkerProcess, greeting: bytes) -> None:
        try:
            ok, complaint = pickle.loads(greeting)
        except Exception as error:  # noqa: BLE001 - a named boundary: user code may have written it
            ok, complaint = False, describe(error)
        if not ok:  # it ends now, and `_lost` takes it from there
            worker.complaint = Raised(*complaint)
            return
        worker.greeted = True
        if not self._opened.done():
            self._opened.set_result(None)
        self._dispatch()

    def _start_failed(self, reason: str, complaint: Raised | None) -> None:
        """Try again a few times; then do with the workers that there are, or give up."""
        self._failed_starts += 1
        if self._failed_starts < _MAX_FAILED_STARTS and (complaint is None or self._opened.done()):
            self._loop.call_soon(self._hire)
            return
        if ready := sum(worker.greeted for worker in self._workers):
            _log.warning("A %s worker %s; going on with %d.", self._name, reason, ready)
            self._size, self._failed_starts = ready, 0
            return
        self._give_up(reason, complaint)

    def _give_up(self, reason: str, complaint: Raised | None) -> None:
        if complaint is None:
            error = ConfigError(f"The {self._name} worker {reason}, before it could run anything; see what it printed.")
        else:
            why = f"{complaint.type}: {complaint.message}".rstrip(": ")
            error = ConfigError(f"The {self._name} could not be loaded in a worker: {why}. Fix it and run again.")
            error.add_note(complaint.traceback)
        self._stop(error)
        self._refuse_unfinished(self._workers)
        if not self._opened.done():
            self._opened.set_exception(error)

    def _stop(self, refusal: Exception) -> None:
        self._refusal = refusal
        for handle in (self._dispatch_soon, self._watch_later):
            if handle is not None:
                handle.cancel()
        self._dispatch_soon = self._watch_later = None

    def _refuse_unfinished(self, workers: Sequence[WorkerProcess]) -> None:
        """Calls that can have no outcome get the pool's error, or are cancelled where it was closed."""
        sent = [call for worker in workers for _, call in worker.unanswered()]
        waiting, self._pending = self._pending, deque()
        for call in (*sent, *waiting):
            if isinstance(self._refusal, ConfigError) and not call.future.done():
                call.future.set_exception(self._refusal)
            else:
                call.future.cancel()

    # ── workers go ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Look after the workers again soon, if any has something to do."""
        if self._watch_later is not None or self._refusal is not None:
            return
        if any(worker.sent or not worker.greeted for worker in self._workers):
            running = [found for worker in self._workers if (found := worker.running())]
            left = min((found.started + self._timeout - time.monotonic() for found in running), default=self._timeout)
            self._watch_later = self._loop.call_later(max(0.001, min(left, _WATCH_SECONDS)), self._look_after)

    def _look_after(self) -> None:
        self._watch_later = None
        for worker in tuple(self._workers):
            if not worker.greeted and time.monotonic() - worker.born > self._startup:
                worker.complaint = Raised("TimeoutError", f"it took more than {self._startup:.0f} s to load", "")
                self._let_go(worker)
            elif worker.has_ended():
                self._let_go(worker)
            else:
                self._keep_deadline(worker)
        self._watch()

    def _keep_deadline(self, worker: WorkerProcess) -> None:
        running = worker.running()
        if running is None:
            if worker.is_in_a_frame and worker.silence() > self._timeout:
                worker.cut_off_as_garbled()
            elif worker.silence() > self._timeout + _SILENCE_SECONDS:
                worker.cut_off_as_garbled("read from its connection to the pool")
            return
        worker.quiet_since = None
        seconds = time.monotonic() - running.started
        if seconds >= self._timeout:
            self._let_go(worker, late=running.serial)
        elif seconds >= _STUCK_SECONDS:
            taken = worker.take_back(running)
            if taken:
                self._put_back(taken)
                self._dispatch()

    def _lost(self, worker: WorkerProcess) -> None:
        if worker in self._workers:
            self._let_go(worker)

    def _let_go(self, worker: WorkerProcess, *, late: int | None = None) -> None:
        """Part with a worker that is `late` with a call, or has ended or must; replace it at once if it ever worked."""
        self._workers.remove(worker)
        funeral = self._loop.create_task(self._bury(worker, late))
        self._funerals.add(funeral)
        funeral.add_done_callback(self._funerals.discard)
        if late is not None or worker.answered or worker.running() is not None:
            self._hire()

    async def _bury(self, worker: WorkerProcess, late: int | None) -> None:
        try:
            reason = await worker.bury(_LAST_WORDS_SECONDS if late is None else 0.0)
            running = worker.running()
            blamed = late if late is not None else running.serial if running is not None else None
            outcome = Died(reason) if late is None else TimedOut(self._timeout)
            if blamed is None or worker.garbled:
                self._settle_apart(worker, outcome)
            else:
                self._settle(worker, blamed, outcome)
        finally:
            worker.release()
        if self._refusal is not None:
            self._refuse_unfinished([])
            return
        if not worker.greeted:
            self._start_failed(reason, worker.complaint)
        self._dispatch()

    def _settle(self, worker: WorkerProcess, blamed: int, outcome: Outcome) -> None:
        """Give the outcome to the call that it ended in; the others go back.

        A process may end because of what an earlier call left in it, such as a thread or a timer. So a call that was
        not the first in it is tried once more.
        """
        back: list[PendingCall] = []
        for serial, call in worker.unanswered():
            if serial == blamed and (call.losses or not serial or not isinstance(outcome, Died)):
                call.settle(outcome)
                continue
            call.losses += serial == blamed
            back.append(call)
        self._put_back(back)

    def _settle_apart(self, worker: WorkerProcess, outcome: Outcome) -> None:
        """Any of its calls may have spoilt the process or the connection: each is done alone, until it is known which.

        Who is seen to have used the connection as the first in a process is known at once. A process may also end for
        other reasons, so a call in it gets a second one.
        """
        back = [(serial, call) for serial, call in worker.unanswered()]
        if len(back) == 1 and (back[0][1].losses or (worker.garbled and back[0][0] == 0)):
            back.pop()[1].settle(outcome)
        for _, call in back:
            call.losses += len(back) == 1
            call.alone = True
        self._put_back([call for _, call in back])


def _backlog(worker: WorkerProcess) -> int:
    return len(worker.sent)


def _outcome(answer: bytes) -> Outcome:
    try:
        ok, value = pickle.loads(answer)
        return Done(value) if ok else Raised(*map(str, value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a named boundary: unpickling runs the result's own code
        kind, message, trace = describe(error)
        return Raised(kind, f"its result cannot be unpickled here ({message}); return plain data instead", trace)


def _unpacked(
    parcels: Sequence[Sequence[int]], futures: Sequence[asyncio.Future[Outcome]], outcomes: list[Outcome | None]
) -> list[int]:
    """Put down what each call of the parcels came to, by its number; the calls of parcels that were lost remain."""
    lost: list[int] = []
    for parcel, future in zip(parcels, futures, strict=True):
        if future.cancelled():
            continue
        outcome = future.result()
        if len(parcel) == 1:
            outcomes[parcel[0]] = outcome
        elif (found := _outcomes_in(outcome, parcel)) is not None:
            for number, one in zip(parcel, found, strict=True):
                outcomes[number] = one
        else:
            lost += parcel
    return lost


def _outcomes_in(outcome: Outcome, parcel: Sequence[int]) -> list[Outcome] | None:
    """The outcomes of a parcel's calls; None where it was lost, or one of them changed what the worker says."""
    if not isinstance(outcome, Done):
        return None
    try:
        found: list[Outcome] = [Done(value) if ok else Raised(*map(str, value)) for ok, value in outcome.value]
    except (TypeError, ValueError):
        return None
    return found if len(found) == len(parcel) else None


def _unsendable(error: Exception) -> Raised:
    kind, message, trace = describe(error)
    return Raised(kind, f"its arguments cannot be pickled ({message}); pass plain data instead", trace)


async def _dismiss(worker: WorkerProcess) -> None:
    """Let an idle worker end by itself; one at work is not waited for."""
    busy = any(True for _ in worker.unanswered()) or worker.running() is not None
    worker.hang_up()
    await worker.bury(0.0 if busy else _GOODBYE_SECONDS)
