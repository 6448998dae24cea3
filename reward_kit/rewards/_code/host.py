"""This process's own place to run code: started when first needed, closed when the process ends.

    a reward, in any thread ── run(work) ─▶ one event loop in a thread of its own ─▶ zygotes, sandboxes

Rewards are called from plain Python, from threads of a trainer, from coroutines and in worker processes. All calls in a
process share its zygotes, whatever loop or thread they come from. A forked process begins without any, and starts its
own. Where no zygote can be started, the call raises `SandboxError`; code is never run without isolation instead.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import SandboxBackend
from reward_kit.sandbox.python.pool import PythonZygote

__all__ = ["Host", "close_host", "run"]

T = TypeVar("T")
_CLOSE_SECONDS = 30.0


class Host:
    """An event loop in a thread, with what has been started on it."""

    def __init__(self) -> None:
        """Start the thread; nothing else is started before it is needed."""
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reward-kit-code", daemon=True)
        self._thread.start()
        self._zygotes: dict[str | None, PythonZygote] = {}
        self._backends: dict[str, asyncio.Task[SandboxBackend]] = {}

    def zygotes(self, python: str | None = None) -> PythonZygote:
        """The zygotes of an interpreter, or of this one: one per core at most, started when all others are busy."""
        if python not in self._zygotes:
            self._zygotes[python] = PythonZygote(python=python)
        return self._zygotes[python]

    async def backend(self, name: str) -> SandboxBackend:
        """The sandbox backend of that name, or the first that works for `auto`; chosen once."""
        if name not in self._backends:
            self._backends[name] = asyncio.get_running_loop().create_task(choose_backend(name))
        try:
            return await asyncio.shield(self._backends[name])
        except BaseException:
            task = self._backends.get(name)
            if task is not None and task.done() and (task.cancelled() or task.exception()):
                del self._backends[name]
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Have it done on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End everything that was started."""
        with contextlib.suppress(concurrent.futures.TimeoutError):
            self.submit(self._close()).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def _close(self) -> None:
        for zygotes in self._zygotes.values():
            await zygotes.close()
        for task in self._backends.values():
            if task.done() and not task.cancelled() and task.exception() is None:
                await task.result().close()

    def forget(self) -> None:
        """In a forked process: let go of the parent's, without ending them."""
        for zygotes in self._zygotes.values():
            zygotes.abandon()


class _Process:
    """The one host of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._host: Host | None = None
        self._abandoned: list[Host] = []

    def host(self) -> Host:
        """The host, started where there is none yet."""
        with self._lock:
            if self._host is None:
                self._host = Host()
            return self._host

    def close(self) -> None:
        """End the host, if there is one."""
        with self._lock:
            host, self._host = self._host, None
        if host is not None:
            host.close()

    def after_fork(self) -> None:
        """The child has no loop thread, and a copy of a lock that another thread may have held."""
        self._lock = threading.Lock()
        if self._host is not None:
            self._host.forget()
            self._abandoned.append(self._host)  # not collected: that would speak to the parent's processes
            self._host = None


_process = _Process()


def run(work: Callable[[Host], Awaitable[T]]) -> T:
    """Have `work` done on this process's loop, and wait for what comes of it."""
    host = _process.host()

    async def whole() -> T:
        return await work(host)

    future = host.submit(whole())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # where we were interrupted; else it is done
        raise


def close_host() -> None:
    """End what was started for rewards in this process. The next call starts anew."""
    _process.close()


# Not by `atexit`, which comes when thread pools take no more work, and closing needs one. They stop in the same way, in
# the reverse order of being loaded, so theirs must be loaded by now.
importlib.import_module("concurrent.futures.thread")
threading._register_atexit(close_host)  # type: ignore[attr-defined]
os.register_at_fork(after_in_child=_process.after_fork)
