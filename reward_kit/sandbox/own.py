# SPDX-License-Identifier: Apache-2.0
"""A process's own sandboxes and isolated Python: started when first needed, closed when the process ends.

    a reward, in any thread ── wait(work) ─▶ one event loop in a thread of its own ─▶ sandboxes, isolated Python

Rewards are called from plain Python, from threads of a trainer, from coroutines and in worker processes. All calls in a
process that mean the same settings share what was started, whatever loop or thread they come from. A forked process
begins without any, and starts its own. A worker of a run uses the run's `sandbox` settings; who calls a reward without
handing it anything uses the default ones. Where nothing can be started, the call raises `SandboxError`; code is never
run without isolation instead.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from reward_kit.config_models import SandboxConfig
from reward_kit.errors import RewardError
from reward_kit.sandbox.from_settings import SandboxOnDemand, choose_isolated_python
from reward_kit.sandbox.isolated_python import IsolatedPython
from reward_kit.sandbox.python.pool import PythonZygote
from reward_kit.utils.per_process import PerProcess

__all__ = ["Host", "close_hosts", "own_host", "own_resources", "wait_on"]

T = TypeVar("T")
_CLOSE_SECONDS = 30.0


class Host:
    """An event loop in a thread, with what has been started on it by one set of settings."""

    def __init__(self, config: SandboxConfig) -> None:
        """Start the thread; nothing else is started before it is needed."""
        self.loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="reward-kit-code", daemon=True)
        self._thread.start()
        self._config = config
        self.sandbox = SandboxOnDemand(config, concurrency=1, loop=self.loop)
        """Opens sandboxes."""
        self._choosing = asyncio.Lock()
        self.python: IsolatedPython | None = None
        """Isolated Python, once it has been asked for."""

    async def isolated_python(self) -> IsolatedPython:
        """Isolated Python; to be awaited on the loop. Chosen once; where that fails, the next who asks tries again."""
        if self.python is None:
            async with self._choosing:
                if self.python is None:  # nobody else has chosen meanwhile
                    self.python = await choose_isolated_python(self._config, self.sandbox)
        return self.python

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done on the loop, and wait for what comes of it."""
        return wait_on(self.loop, work)

    def close(self) -> None:
        """End everything that was started."""
        with contextlib.suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(_CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()

    async def _close(self) -> None:
        if self.python is not None:
            await self.python.close()
        await self.sandbox.close()

    def forget(self) -> None:
        """In a forked process: let go of the parent's, without ending them."""
        if isinstance(self.python, PythonZygote):
            self.python.abandon()


def wait_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Have something done on an event loop that runs in another thread, and wait for what comes of it."""
    with contextlib.suppress(RuntimeError):
        if asyncio.get_running_loop() is loop:
            work.close()
            raise RewardError("A reward that waits for its sandbox was called on the sandbox's own event loop. Call it "
                              "in a thread: `await asyncio.to_thread(reward, …)`.")  # fmt: skip
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # where we were interrupted; else it is done
        raise


class _Hosts:
    """The hosts of a process, one for each set of settings that was asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[SandboxConfig, Host] = {}

    def of(self, config: SandboxConfig) -> Host:
        """The host of these settings, started where there is none yet."""
        with self._lock:
            if config not in self._hosts:
                self._hosts[config] = Host(config)
            return self._hosts[config]

    def close(self) -> None:
        """End the zygotes and sandboxes that this process started."""
        for host in self._hosts.values():
            host.close()

    def forget(self) -> None:
        """In a forked process: let go of the parent's, without ending them."""
        for host in self._hosts.values():
            host.forget()


_hosts = PerProcess(_Hosts, _Hosts.close, _Hosts.forget, close_before_threads=True)  # closing needs a thread pool
_DEFAULT = SandboxConfig()


def own_host(config: SandboxConfig = _DEFAULT) -> Host:
    """This process's host for these settings."""
    return _hosts.get().of(config)


def own_resources(config: SandboxConfig, names: Collection[str]) -> dict[str, Any]:
    """What a synchronous reward in this process is handed of `sandbox` and `isolated_python`, as far as named."""
    host = own_host(config)
    found: dict[str, Any] = {"sandbox": host.sandbox} if "sandbox" in names else {}
    if "isolated_python" in names:
        found["isolated_python"] = host.python or host.wait(host.isolated_python())
    return found


def close_hosts() -> None:
    """End what was started for rewards in this process. The next call starts anew."""
    _hosts.close()
