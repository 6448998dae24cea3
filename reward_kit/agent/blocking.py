# SPDX-License-Identifier: Apache-2.0
"""Blocking functions in threads that nobody waits for: one that never returns holds up neither the run nor its end.

The threads of `asyncio.to_thread` are few, and the interpreter waits for each of them when it ends. A tool that hangs
would use them up and keep the process from ending. These are as many as are needed, and end with the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from reward_kit.errors import EnvironmentFailure
from reward_kit.utils.per_process import PerProcess

__all__ = ["in_a_thread"]

T = TypeVar("T")

_MOST = 2_048
"""Threads at a time. So many that hang are a fault of the world."""
_SECONDS_IDLE = 30.0

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


async def in_a_thread(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """What the function returns, called in a thread. Cancelled, it goes on there, and nobody hears of it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()
    _threads.get().give((loop, future, lambda: context.run(function, *arguments, **named)))
    return await future


class _Threads:
    """As many threads as there are calls at a time. One that is idle is used again, and ends after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[_Job]] = []
        self._running = 0

    def give(self, job: _Job) -> None:
        """Have a thread do the job: one that is idle, or a new one."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = self._start()
        inbox.put(job)

    def _start(self) -> queue.SimpleQueue[_Job]:
        with self._lock:
            if self._running >= _MOST:
                raise EnvironmentFailure(
                    f"{_MOST} calls of blocking functions are running, and none returns. Give the tools a time limit "
                    "of their own, or make them `async def`."
                )
            self._running += 1
        inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(inbox,), name="reward-kit world", daemon=True).start()
        return inbox

    def _work(self, inbox: queue.SimpleQueue[_Job]) -> None:
        try:
            while (job := self._next(inbox)) is not None:
                loop, future, call = job
                try:
                    result, error = call(), None
                except BaseException as raised:  # noqa: BLE001 - handed to whoever waits, whatever it is
                    result, error = None, raised
                with self._lock:
                    self._idle.append(inbox)
                try:
                    loop.call_soon_threadsafe(_settle, future, result, error)
                except RuntimeError:  # the loop has ended meanwhile
                    continue
                del job, call, result, error
        finally:
            with self._lock:
                self._running -= 1

    def _next(self, inbox: queue.SimpleQueue[_Job]) -> _Job | None:
        """The next job; None where there was none for a while, and nobody can have this thread any more."""
        try:
            return inbox.get(timeout=_SECONDS_IDLE)
        except queue.Empty:
            with self._lock:
                if inbox in self._idle:
                    self._idle.remove(inbox)
                    return None
            return inbox.get()  # somebody has just taken it


_threads = PerProcess(make=_Threads)
"""A forked child has none of its parent's threads, so it starts its own."""


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))  # none of these may end the loop
    else:
        future.set_exception(error)
