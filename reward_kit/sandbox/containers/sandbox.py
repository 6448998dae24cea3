# SPDX-License-Identifier: Apache-2.0
"""One sandbox in a container: the contract, said to the container's driver."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shlex
import time
from collections.abc import Callable

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.containers.changed import DANGLE, Changes
from reward_kit.sandbox.containers.engine import Engine, State
from reward_kit.sandbox.containers.stream import CommandEnd, DriverStream, Heard, Operation, Sink, StreamEnded
from reward_kit.sandbox.contract import SandboxSpec
from reward_kit.sandbox.files_by_shell import check_file, file_name, to_read, to_write
from reward_kit.sandbox.output import Captured, CommandOutput
from reward_kit.sandbox.setup import run_setup
from reward_kit.sandbox.trust import talks_to_a_process
from reward_kit.utils.closing import ClosedAfterwards

__all__ = ["ContainerSandbox"]

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 30.0
_BEGIN_SECONDS = 60.0
_FILE_SECONDS = 60.0
_FILE_LIMIT = 1 << 30
_PIECE = 4 << 20
_NOT_EXECUTABLE = 126
_SIGKILL = 9


class ContainerSandbox(ClosedAfterwards):
    """One container and the shell in it."""

    def __init__(
        self,
        engine: Engine,
        key: str,
        stream: DriverStream,
        spec: SandboxSpec,
        closed: Callable[[ContainerSandbox], None],
    ) -> None:
        self._engine = engine
        self._key = key
        self._stream = stream
        self._spec = spec
        self._tell_closed = closed
        self._turn = asyncio.Lock()
        self._exited = False
        self._closed = False
        self._broken: str | None = None
        self._before = CommandEnd(0, False, None, None, 0, "/")
        self._workdir = "/"
        self._changes = Changes(engine, key)

    async def begin(self) -> None:
        """Start the shell where the spec says, write its files, run its setup."""
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in self._spec.environment.items())
        place = shlex.quote(self._spec.workdir or "")
        moves = f"mkdir -p -- {place} && cd -- {place}" if self._spec.workdir else "true"
        began = await self._ask("B", f"{exports}{moves}", _BEGIN_SECONDS)
        if not began.ok:
            raise SandboxError(f"the directory {self._spec.workdir!r} cannot be made in the sandbox: {began.output!r}; "
                               "name another", retryable=False)  # fmt: skip
        self._workdir = self._before.directory
        for path, content in self._spec.files.items():
            await self.write(path, content)
        await run_setup(self, self._spec)

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the persistent shell."""
        if self._exited:
            raise SandboxError(
                "the shell of this sandbox has exited; open another sandbox, or use run_standalone", retryable=False
            )
        return await self._ask("R", command, timeout, stdin)

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own, in the directory where the shell is."""
        return await self._ask("S", command, timeout, stdin)

    async def mark(self) -> None:
        """What is there now is what the task is about."""
        await self._changes.mark()

    async def check(self, command: str) -> ExecResult:
        """Run standalone while all else stands still, unless what it needs was changed."""
        still = not talks_to_a_process(command)
        if still:
            await self._ask("STOP", "", _FILE_SECONDS)
        distrusted, new = await self._changes.look(command)
        if distrusted:
            return ExecResult(exit_code=None, distrusted=distrusted)
        if new:
            await self._ask("S", DANGLE, _FILE_SECONDS, "".join(f"{path}\0" for path in new).encode())
        done = await self._ask("S", command, None)
        if still:
            await self._ask("CONT", "", _FILE_SECONDS)
        return done

    async def read(self, path: str) -> bytes:
        """The content of a file, opened inside the container; an OSError where there is none that can be read."""
        name, content = file_name(path, self._workdir), _Content()
        done = await self._ask("S", f"{to_read(name)}; exec cat -- {name}", _FILE_SECONDS, sink=content)
        check_file(path, done)
        return bytes(content.data)

    async def write(self, path: str, content: bytes) -> None:
        """Write a file, and the directories above it, inside the container."""
        name = file_name(path, self._workdir)
        check_file(path, await self._ask("S", to_write(name), _FILE_SECONDS))
        for start in range(0, len(content), _PIECE):
            piece = content[start : start + _PIECE]
            check_file(path, await self._ask("S", f"exec cat >> {name}", _FILE_SECONDS, piece))

    async def close(self) -> None:
        """Remove the container. Where the engine fails, it is left to be swept."""
        if self._closed:
            return
        self._closed = True
        self._tell_closed(self)
        try:
            await self._engine.remove(self._key)
        except SandboxError as error:
            _log.warning("a container is left behind: %s", error)
        finally:  # not before: it would end of itself, and podman fails to remove what is just ending
            await self._stream.close()

    async def _ask(
        self,
        operation: Operation,
        command: str,
        timeout: float | None,
        stdin: bytes | None = None,
        sink: _Content | None = None,
    ) -> ExecResult:
        """Run a command. Where it ended its own container, that is its result."""
        if "\0" in command:
            text = "bash: the command holds a NUL byte, which no shell accepts\n"
            return ExecResult(exit_code=_NOT_EXECUTABLE, output=text, stderr=text)
        allowed = self._spec.limits.timeout if timeout is None else timeout
        output, began, before = CommandOutput(self._spec.limits.output_bytes), time.monotonic(), self._before
        try:
            heard = await self._stream_to(sink or output, operation, command, allowed, stdin or b"")
        except StreamEnded:
            state = await self._state_after_the_end()
            facts: dict[str, object] = {"signal": _SIGKILL, "exited": True, "oom_killed": state.oom_killed}
        else:
            facts = _facts(heard, before)
        captured = (sink or output).captured()._asdict()
        return ExecResult.model_validate(
            {"exit_code": None, **captured, **facts, "wall_seconds": time.monotonic() - began}
        )

    async def _stream_to(
        self, sink: Sink, operation: Operation, command: str, timeout: float, stdin: bytes = b""
    ) -> Heard:
        async with self._turn:
            self._check_usable()
            try:
                heard = await self._stream.ask(
                    operation, command, sink, timeout=timeout, grace=_GRACE_SECONDS, stdin=stdin
                )
            except StreamEnded:
                self._broken = "its container has ended"
                raise
            except TimeoutError:
                self._broken = "its driver does not answer"
                raise SandboxError("a container's driver does not answer; try again") from None
            except asyncio.CancelledError:
                self._exited = self._exited or operation == "R"  # nobody knows what the shell is at
                raise
            self._before = heard.ending
            self._exited = self._exited or heard.ending.exited
            return heard

    def _check_usable(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed; open another", retryable=False)
        if self._broken is not None:
            raise SandboxError(f"this sandbox cannot be used any more: {self._broken}; open another")

    async def _state_after_the_end(self) -> State:
        """How the container ended in mid-command. Only where the command did it is that not a `SandboxError`."""
        if self._closed:
            raise SandboxError("the sandbox was closed while a command ran in it", retryable=False)
        state = await self._engine.state(self._key)
        if not state.ended_from_inside:
            raise SandboxError("a container was killed from outside while a command ran in it; try again")
        return state


class _Content:
    """A file's bytes, all of them, and what is said of it on standard error."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._complaint = ""

    def from_stdout(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > _FILE_LIMIT:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    def from_stderr(self, data: bytes) -> None:
        self._complaint = (self._complaint + data.decode("utf-8", "replace"))[-500:]

    def captured(self) -> Captured:
        return Captured(self._complaint, "", self._complaint, False)


def _facts(heard: Heard, before: CommandEnd) -> dict[str, object]:
    """What the driver's counters say of a command: the difference to those before it."""
    ending = heard.ending
    known = ending.cpu_nanoseconds is not None and before.cpu_nanoseconds is not None
    return {
        "exit_code": None if heard.timed_out else ending.status,
        "signal": _SIGKILL if heard.timed_out else None,
        "timed_out": heard.timed_out,
        "exited": ending.exited,
        "oom_killed": ending.oom_kills > before.oom_kills,
        "cpu_seconds": ((ending.cpu_nanoseconds or 0) - (before.cpu_nanoseconds or 0)) / 1e9 if known else None,
        "peak_memory_bytes": ending.peak_bytes,
    }
