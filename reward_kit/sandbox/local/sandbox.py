# SPDX-License-Identifier: Apache-2.0
"""A sandbox on this machine: a shell session, processes beside it and files, through a supervisor."""

from __future__ import annotations

import asyncio
import os
import posixpath
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.linux.disk_use import DiskUse
from reward_kit.sandbox.linux.rlimits import most_use
from reward_kit.sandbox.local.pipes import Reader, write_all
from reward_kit.sandbox.local.porter_client import Ended
from reward_kit.sandbox.local.session import ProcessPlace, ShellSession, run_beside
from reward_kit.sandbox.setup import run_setup
from reward_kit.sandbox.trust import TRUSTED_PROGRAMS, talks_to_a_process, waits
from reward_kit.utils.closing import ClosedAfterwards

__all__ = ["LocalSandbox"]

_FILE_SECONDS = 60.0
_PORTER_AND_SHELL = 2


class LocalSandbox(ClosedAfterwards):
    """One sandbox of the backends `namespaces` and `none`."""

    def __init__(
        self,
        place: ProcessPlace,
        workdir: str,
        opened: Awaitable[None],
        end: Callable[[], Awaitable[None]],
        *,
        disk: Callable[[DiskUse], Awaitable[DiskUse]],
        is_bounded: Callable[[], bool] = lambda: False,
        look: Callable[[str | None], Awaitable[dict[str, Any]]] | None = None,
    ) -> None:
        """Start a shell in `place`, which may still be opening; `end` ends everything in it.

        `disk` tells what its files take, and may stop counting at what it is given. `is_bounded` tells, once it is
        open, whether that cannot be too much, so that nobody needs to look. `look` makes a check ready, as the
        supervisor does; without it, a check is no more than a command.
        """
        self._place = place
        self._workdir = workdir
        self._opened = opened
        self._end = end
        self._session = ShellSession(place, workdir)
        self._closing: asyncio.Task[None] | None = None
        self._full = False
        self.setup_seconds = 0.0
        """How long its setup took."""
        self._disk = _DiskGuard(disk, most_use(place.limits), self._exceeded, self.is_quiet)
        self._is_bounded = is_bounded
        self._look = look

    async def prepare(self, spec: SandboxSpec) -> None:
        """Wait until it is open, write the files, run the setup."""
        await self._opened
        for path, content in spec.files.items():
            await self.write(path, content)
        began = time.monotonic()
        await run_setup(self, spec)
        self.setup_seconds = time.monotonic() - began

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the persistent shell."""
        self._check()
        with self._watched():
            return self._noted(await self._session.run(command, timeout, stdin))

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own, in the directory where the shell is."""
        self._check()
        with self._watched():
            return self._noted(await run_beside(self._place, self._session, command, timeout, stdin))

    async def mark(self) -> None:
        """What is there now is what the task is about."""
        if self._look is not None:
            await self._look(None)

    async def check(self, command: str) -> ExecResult:
        """Run standalone, with the programs and libraries of the root, while all else stands still."""
        if self._look is None:
            return await self.run_standalone(command)
        self._check()
        with self._watched():
            await asyncio.sleep(min(waits(command), self._place.limits.timeout))
            await self._stop()
            done = await self._trusted(self._look, command)
        stood_still = (await self._go_on()).status == 0
        if stood_still or talks_to_a_process(command) or done.distrusted:
            return done
        return done.model_copy(update={"distrusted": "a process that does not stand still"})

    async def _stop(self) -> None:
        """Have all that runs in it stand still."""
        await self._place.porter.enter("stop", {}, []).ended

    async def _go_on(self) -> Ended:
        """Let it go on; `status` says whether it did so before."""
        return await self._place.porter.enter("go_on", {}, []).ended

    async def _trusted(self, look: Callable[[str | None], Awaitable[dict[str, Any]]], command: str) -> ExecResult:
        ready = await look(command)
        if ready.get("refused"):
            return ExecResult(exit_code=None, distrusted=ready["refused"])
        programs = ready.get("programs")
        talks = talks_to_a_process(command)
        if talks:
            await self._go_on()
        place = self._place if programs is None else _with_programs(self._place, programs)
        done = self._noted(await run_beside(place, self._session, command, None, None))
        if programs is None:
            return done
        if talks:
            await self._stop()
        return done.model_copy(update={"distrusted": (await look(command)).get("refused") or None})

    @property
    def is_disk_watched(self) -> bool:
        """Whether its disk is looked at: while a command runs, and as long as something runs that it has left."""
        return self._disk.is_at_work

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Look at its disk while a command runs, and for as long as something runs that it has left."""
        if self._is_bounded():
            yield
            return
        self._disk.begin()
        try:
            yield
        finally:
            self._disk.end()

    def _exceeded(self) -> None:
        """Too much disk: everything in the sandbox ends, the shell too."""
        self._full = True
        self._place.porter.end("empty")

    def _noted(self, done: ExecResult) -> ExecResult:
        if not self._full:
            return done
        self._full = False
        most = most_use(self._place.limits)
        note = f"[killed: the sandbox took more than {most.size >> 20} MB of disk or {most.files:,} files]\n"
        return done.model_copy(update={"output": done.output + note, "stderr": done.stderr + note})

    @property
    def is_open(self) -> bool:
        """Whether nobody has closed it."""
        return self._closing is None

    def is_quiet(self) -> bool:
        """Whether nothing runs in it but its shell, as far as can be known."""
        return len(self._place.processes()) <= _PORTER_AND_SHELL

    async def read(self, path: str) -> bytes:
        """The content of a file in the sandbox; an OSError where there is none that can be read."""
        self._check()
        content = bytearray()
        source, sink = os.pipe()
        reader = Reader(source, content.extend)
        try:
            await self._file_work("read", path, sink)
            reader.drain()
        finally:
            reader.close()
        return bytes(content)

    async def write(self, path: str, content: bytes) -> None:
        """Write a file in the sandbox, and the directories it is in."""
        self._check()
        source, sink = os.pipe()
        os.set_blocking(sink, False)
        feeding = asyncio.ensure_future(_feed(sink, content))
        try:
            await self._file_work("write", path, source)
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])

    async def _file_work(self, do: str, path: str, descriptor: int) -> None:
        """Have a process in the sandbox, as its own user, read or write a file."""
        whole = posixpath.join(self._workdir, path)
        request = {"path": whole, "most": self._place.limits.file_size_mb << 20}
        child = self._place.porter.enter(do, request, [descriptor])
        done, _ = await asyncio.wait([child.ended], timeout=_FILE_SECONDS)
        if not done:
            raise SandboxError(f"To {do} {path!r} in the sandbox took more than {_FILE_SECONDS:g} s. Try again.")
        if status := child.ended.result().status:
            raise OSError(status, os.strerror(status), path)

    def _check(self) -> None:
        if self._closing is not None:
            raise SandboxError("The sandbox is closed. Open another one.", retryable=False)

    async def close(self) -> None:
        """End everything in it and leave nothing behind."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._disk.close()
        try:
            await self._end()
        finally:
            self._session.close()
            self._place.porter.close()


def _with_programs(place: ProcessPlace, programs: list[str]) -> ProcessPlace:
    """A place where these programs of the root are found before all others."""
    path = f"{TRUSTED_PROGRAMS}:{place.environment['PATH']}"
    shell = f"{TRUSTED_PROGRAMS}/bash" if "bash" in programs else place.shell
    return place._replace(shell=shell, environment={**place.environment, "PATH": path})


async def _feed(sink: int, content: bytes) -> None:
    try:
        await write_all(sink, content)
    except BrokenPipeError:
        pass  # the reader says why it stopped
    finally:
        os.close(sink)


# ── the disk it takes ─────────────────────────────────────────────────────────────────────────────────────────────────

_PAUSE = 0.25
"""Seconds. Less can hardly be enough to write more than a sandbox may hold."""
_SHARE = 1
"""A pause is at least so many times as long as the look before it. No look takes long: it ends at the limits."""


class _DiskGuard:
    """Watches one sandbox: from soon after a command begins until none runs and nobody is left in it but its shell."""

    def __init__(
        self,
        measure: Callable[[DiskUse], Awaitable[DiskUse]],
        most: DiskUse,
        exceeded: Callable[[], None],
        is_quiet: Callable[[], bool],
    ) -> None:
        """Call `exceeded` whenever the sandbox is found to take more than `most`.

        `measure` tells what it takes, and may stop counting at what it is given. `is_quiet` tells whether only the
        shell is left.
        """
        self._measure = measure
        self._most = most
        self._exceeded = exceeded
        self._is_quiet = is_quiet
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def is_at_work(self) -> bool:
        """Whether it looks at the disk, or will do so soon."""
        return self._timer is not None or self._looking is not None

    def begin(self) -> None:
        """Note that a command begins: look at the disk from now on."""
        self._running += 1
        if not self.is_at_work:
            # Not one per command: a command can be shorter than setting a timer for it.
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._look)

    def end(self) -> None:
        """It has ended. What it has started may still be at work."""
        self._running -= 1

    def close(self) -> None:
        """Stop watching: the sandbox is being closed."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _look(self) -> None:
        self._timer = None
        if not self._is_closed:
            self._looking = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        try:
            await self._keep_looking()
        finally:
            self._looking = None  # at once: a command that begins now has to be watched again

    async def _keep_looking(self) -> None:
        while True:
            began = time.monotonic()
            # Asked first: whoever is there by then is seen by this look, and nobody else can come.
            is_over = not self._running and await asyncio.to_thread(self._is_quiet)
            if (await self._measure(self._most)).exceeds(self._most):
                self._exceeded()
            if is_over and not self._running:
                return
            await asyncio.sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))
