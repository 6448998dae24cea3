# SPDX-License-Identifier: Apache-2.0
"""A bounded number of sandboxes at a time, some of them started before they are asked for.

    pool = SandboxPool(backend, size=8, warm=2)
    async with await pool.open(spec) as sandbox: ...        # waits while eight are open

A pool is a backend itself. What it starts ahead has seen no setup and no command; what has been used is closed, and
never given to anybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Probe, Sandbox, SandboxBackend, SandboxSpec, check_in, mark_in
from reward_kit.sandbox.setup import run_setup
from reward_kit.utils.closing import ClosedAfterwards

__all__ = ["SandboxPool"]


class SandboxPool:
    """Sandboxes of `backend`, at most `size` open at a time; `warm` of them are kept ready."""

    def __init__(self, backend: SandboxBackend, *, size: int, warm: int = 0) -> None:
        """The pool takes the backend over: closing the one closes the other."""
        self.name = backend.name
        self._backend = backend
        self._free = asyncio.Semaphore(size)
        self._size = size
        self._most_warm = min(warm, size)
        self._open = 0
        self._kind: SandboxSpec | None = None
        self._warm: deque[Sandbox] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = False

    async def probe(self) -> Probe:
        """What the backend's self-test finds."""
        return await self._backend.probe()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh sandbox with its setup done; waits for its turn."""
        if self._closed:
            raise SandboxError("The pool of sandboxes is closed. Make another one.", retryable=False)
        await self._free.acquire()
        try:
            sandbox = await self._ready(spec)
        except BaseException:
            self._free.release()
            raise
        self._open += 1
        self._get_ahead()
        return _Lent(sandbox, self._returned)

    def _returned(self) -> None:
        self._open -= 1
        self._free.release()
        self._get_ahead()

    async def _ready(self, spec: SandboxSpec) -> Sandbox:
        kind = replace(spec, setup=(), files={})
        if kind != self._kind:
            await self._change_to(kind)
        while self._warm and self._kind == kind:  # while this waited, somebody may have asked for another kind
            sandbox = self._warm.popleft()
            try:
                if await _is_alive(sandbox):
                    await _prepare(sandbox, spec)
                    return sandbox
            except BaseException:
                await sandbox.close()
                raise
            await sandbox.close()
        return await self._backend.open(spec)

    # ── getting ahead ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _change_to(self, kind: SandboxSpec) -> None:
        """Sandboxes of another kind are asked for: those that were started for the last one are of no use."""
        self._kind = kind
        useless = list(self._warm)
        self._warm.clear()
        await asyncio.gather(*(sandbox.close() for sandbox in useless))

    def _get_ahead(self) -> None:
        """Start as many as may be ready and still leave the bound on open ones whole."""
        if self._closed or self._kind is None:
            return
        wanted = min(self._most_warm, self._size - self._open) - len(self._warm) - len(self._starting)
        for _ in range(wanted):
            task = asyncio.ensure_future(self._start(self._kind))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start(self, kind: SandboxSpec) -> None:
        try:
            sandbox = await self._backend.open(kind)
        except SandboxError:
            return  # whoever asks for one next will be told
        if self._closed or kind != self._kind:
            await sandbox.close()
        else:
            self._warm.append(sandbox)

    async def close(self) -> None:
        """Close what is ready, and the backend with all that is open."""
        self._closed = True
        while self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(sandbox.close() for sandbox in self._warm))
        self._warm.clear()
        await self._backend.close()


async def _is_alive(sandbox: Sandbox) -> bool:
    """Whether it still works: one that died while it waited is nobody's failure."""
    try:
        return (await sandbox.run("true")).ok
    except SandboxError:
        return False


async def _prepare(sandbox: Sandbox, spec: SandboxSpec) -> None:
    for path, content in spec.files.items():
        await sandbox.write(path, content)
    await run_setup(sandbox, spec)


class _Lent(ClosedAfterwards):
    """A sandbox of a pool: when it is closed, somebody else may open one."""

    def __init__(self, sandbox: Sandbox, returned: Callable[[], None]) -> None:
        self._sandbox = sandbox
        self._returned: Callable[[], None] | None = returned

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the persistent shell."""
        return await self._sandbox.run(command, timeout=timeout, stdin=stdin)

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own."""
        return await self._sandbox.run_standalone(command, timeout=timeout, stdin=stdin)

    async def mark(self) -> None:
        """What is there now is what the task is about."""
        await mark_in(self._sandbox)

    async def check(self, command: str) -> ExecResult:
        """Run standalone, with what a check may trust."""
        return await check_in(self._sandbox, command)

    async def read(self, path: str) -> bytes:
        """The content of a file."""
        return await self._sandbox.read(path)

    async def write(self, path: str, content: bytes) -> None:
        """Write a file in the sandbox."""
        await self._sandbox.write(path, content)

    async def close(self) -> None:
        """Close it, once, and let the next one be opened."""
        returned, self._returned = self._returned, None
        try:
            await self._sandbox.close()
        finally:
            if returned is not None:
                returned()
