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
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import SandboxBackend
from reward_kit.sandbox.python.pool import PythonZygote
from reward_kit.utils.per_process import PerProcess

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


def run(work: Callable[[Host], Awaitable[T]]) -> T:
    """Have `work` done on this process's loop, and wait for what comes of it."""
    host = _hosts.get()

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
    _hosts.close()


_hosts = PerProcess(Host, Host.close, Host.forget, close_before_threads=True)  # closing needs a thread pool
