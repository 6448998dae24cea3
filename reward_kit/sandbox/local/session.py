# SPDX-License-Identifier: Apache-2.0
"""The persistent shell of a sandbox, and processes beside it: commands in, `ExecResult`s out.

It knows nothing of how the sandbox is made: its processes are started and ended through a supervisor.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.linux.processes import boot_ticks
from reward_kit.sandbox.local.meter import Meter
from reward_kit.sandbox.local.pipes import Reader, write_all
from reward_kit.sandbox.local.porter_client import Child, Ended, PorterClient
from reward_kit.sandbox.output import CommandOutput

__all__ = [
    "DRIVER",
    "NO_INPUT",
    "PLACES",
    "STDIN",
    "CommandReport",
    "ProcessPlace",
    "ShellSession",
    "message",
    "parse_reports",
    "run_beside",
]

_ABORT_SECONDS = 0.05
_ABORT_ATTEMPTS = 6
_MAX_ARGUMENT = 100_000
"""Longer commands do not fit into an argument, of which the kernel takes 128 KiB."""


class ProcessPlace(NamedTuple):
    """Where processes are started, and what every process there is given."""

    porter: PorterClient
    limits: Limits
    environment: Mapping[str, str]
    meter: Callable[[], Meter]
    processes: Callable[[], list[int]]
    """Who is in it."""
    is_ending: Callable[[], bool] = lambda: False
    """Whether it is going, so that what a command does there is no more its own doing."""
    shell: str = "/bin/bash"

    def spawn(self, arguments: list[str], places: tuple[int, ...], descriptors: list[int], **where: Any) -> Child:
        """Start a process. The descriptors are taken over."""
        what = {"program": self.shell, "arguments": arguments, "environment": self.environment, "places": places}
        return self.porter.enter("spawn", {**what, **where}, descriptors)


class _Turn:
    """One command from its start to its result."""

    def __init__(self, place: ProcessPlace) -> None:
        self._meter = place.meter()
        self._began = time.monotonic()
        self._before = self._meter.last
        self.since = boot_ticks()
        self.timed_out = False

    def result(
        self, output: CommandOutput, status: int | None, *, exited: bool = False, cpu: float | None = None
    ) -> ExecResult:
        """`status` is an exit code or, below zero, a signal."""
        before, now = self._before, self._meter.read()
        oom_killed = False
        if before is not None and now is not None:
            if before.cpu_seconds is not None and now.cpu_seconds is not None:
                cpu = now.cpu_seconds - before.cpu_seconds
            oom_killed = now.oom_kills > before.oom_kills
        captured = output.captured()
        ended = status is not None and not self.timed_out
        return ExecResult(
            exit_code=status if ended and status >= 0 else None,  # type: ignore[operator]
            signal=-status if status is not None and status < 0 else None,
            output=captured.output,
            stdout=captured.stdout,
            stderr=captured.stderr,
            truncated=captured.truncated,
            timed_out=self.timed_out,
            oom_killed=oom_killed,
            exited=exited,
            wall_seconds=time.monotonic() - self._began,
            cpu_seconds=cpu,
            peak_memory_bytes=now.peak_memory_bytes if now else None,
        )


def _encoded(command: str) -> bytes | None:
    """The command as a shell can be given it; None where it cannot."""
    data = command.encode(errors="replace")
    return None if b"\0" in data else data


def _not_a_command() -> ExecResult:
    text = "bash: the command holds a NUL byte, which no shell accepts\n"
    return ExecResult(exit_code=126, output=text, stderr=text)


class ShellSession:
    """A bash that stays. One command runs in it at a time."""

    def __init__(self, place: ProcessPlace, directory: str) -> None:
        """Start it in `directory`; the first command waits until it is there."""
        self._place = place
        self._lock = asyncio.Lock()
        self._output = CommandOutput(place.limits.output_bytes)
        self._reports = bytearray()
        self._awaited: dict[bytes, asyncio.Future[int]] = {}
        nonce, self.begun = self._await_report()
        """Done when the shell is in its directory, or has failed to get there."""
        self.directory = directory
        """Where the shell was last known to be."""
        self.ended: Ended | None = None
        """How the shell ended, once it has."""
        self._start(directory, nonce)

    def _await_report(self) -> tuple[bytes, asyncio.Future[int]]:
        """A nonce, and the status that will be reported with it."""
        nonce = secrets.token_hex(4).encode()
        awaited = self._awaited[nonce] = asyncio.get_running_loop().create_future()
        return nonce, awaited

    def _start(self, directory: str, nonce: bytes) -> None:
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        commands, self._commands = os.pipe()
        reports, report = os.pipe()
        stdout, write_stdout = os.pipe()
        stderr, write_stderr = os.pipe()
        self._stdin = _anonymous_file()
        os.set_blocking(self._commands, False)
        self._streams = {stdout: Reader(stdout, self._from_stdout), stderr: Reader(stderr, self._from_stderr)}
        self._readers = [*self._streams.values(), Reader(reports, self._reported)]
        self._written = select.poll()
        for stream in self._streams:
            self._written.register(stream, select.POLLIN)
        taken = [
            null,
            *(os.dup(null) for _ in range(3)),
            commands,
            report,
            os.dup(self._stdin),
            write_stdout,
            write_stderr,
        ]
        arguments = ["bash", "--noprofile", "--norc", "-c", DRIVER, "bash"]
        self.child = self._place.spawn(arguments, PLACES, taken, directory=directory)
        self.child.ended.add_done_callback(self._ended)
        os.write(self._commands, nonce + b"\0")

    def _from_stdout(self, data: bytes) -> None:
        self._output.from_stdout(data)

    def _from_stderr(self, data: bytes) -> None:
        self._output.from_stderr(data)

    # ── what the shell says ──────────────────────────────────────────────────────────────────────────────────────────

    def _reported(self, data: bytes) -> None:
        self._reports += data
        for report in parse_reports(self._reports):
            if awaited := self._awaited.pop(report.nonce, None):
                self.directory = report.directory
                if not awaited.done():
                    awaited.set_result(report.status)

    def _ended(self, ended: asyncio.Future[Ended]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            self.ended = ended.result()
            for reader in self._readers:
                reader.drain()
        for awaited in self._awaited.values():
            if not awaited.done():
                _copy(ended, awaited)
        self._awaited.clear()

    def _take_output(self) -> None:
        """Take what was written before the command's end was reported: mostly there is nothing left."""
        for stream, _ in self._written.poll(0):
            self._streams[stream].drain()

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, command: str, timeout: float | None, stdin: bytes | None) -> ExecResult:
        """Run a command in the shell."""
        data = _encoded(command)
        if data is None:
            return _not_a_command()
        async with self._lock:
            if self.begun.done():
                await self.begun  # raises what kept the shell from starting; one still to start will find its command
            if self.ended is not None:
                raise SandboxError(
                    "The sandbox's shell has exited and takes no more commands. Open another, or run standalone.",
                    retryable=False,
                )
            return await self._run(data, self._place.limits.timeout if timeout is None else timeout, stdin)

    async def _run(self, command: bytes, timeout: float, stdin: bytes | None) -> ExecResult:
        self._give(stdin)
        loop = asyncio.get_running_loop()
        nonce, reported = self._await_report()
        turn = _Turn(self._place)
        expiry: list[asyncio.Task[None]] = []
        timer = loop.call_later(timeout, lambda: expiry.append(loop.create_task(self._expire(turn, reported))))
        try:
            with suppress(BrokenPipeError):
                await write_all(self._commands, message(command, NO_INPUT if stdin is None else STDIN, nonce))
            status = await reported
            if self._place.is_ending():
                raise SandboxError("The sandbox ended while a command ran in it. Open another one.")
        except asyncio.CancelledError:
            self._place.porter.end(
                "kill", self.child, turn.since
            )  # nobody knows what the shell is at: it is of no more use
            raise
        finally:
            timer.cancel()
            for task in expiry:
                task.cancel()
        self._take_output()
        output = self._output
        if not output.empty:
            self._output = CommandOutput(self._place.limits.output_bytes)
        return turn.result(output, status, exited=self.ended is not None)

    def _give(self, stdin: bytes | None) -> None:
        """Put a command's input where it will find it. The shell's end of the file moves with ours."""
        if stdin is None:
            return
        os.ftruncate(self._stdin, 0)
        os.lseek(self._stdin, 0, os.SEEK_SET)
        view = memoryview(stdin)
        while view:
            view = view[os.write(self._stdin, view) :]
        os.lseek(self._stdin, 0, os.SEEK_SET)

    async def _expire(self, turn: _Turn, reported: asyncio.Future[int]) -> None:
        """End the command; where the shell does not come back from it, the shell, too."""
        turn.timed_out = True
        for _ in range(_ABORT_ATTEMPTS):
            self._place.porter.end("abort", self.child, turn.since)
            await asyncio.wait([reported], timeout=_ABORT_SECONDS)
        self._place.porter.end("kill", self.child, turn.since)

    def close(self) -> None:
        """Close this side of every pipe."""
        for reader in self._readers:
            reader.close()
        for descriptor in (self._commands, self._stdin):
            os.close(descriptor)


def _copy(ended: asyncio.Future[Ended], awaited: asyncio.Future[int]) -> None:
    """Who waits for a report of a shell that has ended learns how it ended."""
    if ended.cancelled():
        awaited.cancel()
    elif error := ended.exception():
        awaited.set_exception(error)
        awaited.exception()  # nobody may be waiting
    else:
        awaited.set_result(ended.result().status)


def _anonymous_file() -> int:
    """A file without a name, for input."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdin", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


async def run_beside(
    place: ProcessPlace, session: ShellSession, command: str, timeout: float | None, stdin: bytes | None
) -> ExecResult:
    """Run a command as a process of its own, in the directory where the shell is."""
    data = _encoded(command)
    if data is None:
        return _not_a_command()
    await asyncio.wait([session.begun])  # before anything is opened that would stay open where this is cancelled
    output = CommandOutput(place.limits.output_bytes)
    stdout, write_stdout = os.pipe()
    stderr, write_stderr = os.pipe()
    readers = [Reader(stdout, output.from_stdout), Reader(stderr, output.from_stderr)]
    script, places = _arguments(data)
    given = _input(stdin)
    turn = _Turn(place)
    try:
        where = {"beside": session.child.serial, "directory": session.directory}
        extra = [_input(data)] if places else []
        child = place.spawn(script, (0, 1, 2, *places), [given, write_stdout, write_stderr, *extra], **where)
        ended = await _ended_in_time(place, child, turn, place.limits.timeout if timeout is None else timeout)
        for reader in readers:
            reader.drain()
    finally:
        for reader in readers:
            reader.close()
    return turn.result(output, ended.status, cpu=ended.cpu_seconds)


async def _ended_in_time(place: ProcessPlace, child: Child, turn: _Turn, timeout: float) -> Ended:
    try:
        done, _ = await asyncio.wait([child.ended], timeout=timeout)
        while not done:
            turn.timed_out = True
            place.porter.end("kill", child, turn.since)
            done, _ = await asyncio.wait([child.ended], timeout=1.0)
    except asyncio.CancelledError:
        place.porter.end("kill", child, turn.since)
        raise
    return child.ended.result()


def _arguments(command: bytes) -> tuple[list[str], tuple[int, ...]]:
    if len(command) <= _MAX_ARGUMENT:
        return ["bash", "--noprofile", "--norc", "-c", command.decode(), "bash"], ()
    return ["bash", "--noprofile", "--norc", "-c", f". /dev/fd/{NO_INPUT}", "bash"], (NO_INPUT,)


def _input(data: bytes | None) -> int:
    if data is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = _anonymous_file()
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


# ── what the shell runs ───────────────────────────────────────────────────────────────────────────────────────────────
#
#     backend ──▶ 250:  nonce ␀ (input command ␀ nonce ␀)*          input is the number of the descriptor to read from
#     shell   ──▶ 251:  (nonce status directory ␀)*                 once at the start, then after every command
#
# A command is evaluated in the shell itself, so what it does there lasts. None of these descriptors is open in what it
# starts, and the nonce that ends it is read only after it has ended: nothing that is printed can be taken for an end or
# a status. What a command does to its standard descriptors is undone after it.
#
# bash keeps a descriptor that is redirected for a while aside, from 10 upwards and closed to children. The loop here
# runs with 249 to 254 redirected, and uses them there: as 10 to 15. So nothing has to be closed for each command.
#
# On signal 62 the shell gives up its command: `continue` leaves whatever loops the command is in and returns to the
# loop here. Out of a function there is no such way, so there the shell ends itself.

PLACES: Final = (0, 1, 2, 249, 250, 251, 252, 253, 254)
"""Where a session's descriptors come: three that go nowhere, no input, messages, reports, input, output, errors."""
NO_INPUT: Final = 10
"""Always at its end."""
STDIN: Final = 13
"""What a command is given to read."""

# All on one line: bash counts the lines of a command from the line of its `eval`.
DRIVER: Final = """
__rk_set() { return "$1"; };
__rk_s=0;
shopt -s execfail;
trap '[[ ${__rk_b-} ]] && { [[ ${FUNCNAME-} ]] && kill -KILL $$; continue 99; }' 62;
{ while
__rk_b= __rk_o=${REPLY-};
builtin read -r -d '' -u 11 &&
builtin printf '%s %s %s\\0' "$REPLY" "$__rk_s" "$PWD" >&12 &&
builtin read -r -d '' -u 11;
do
__rk_c=${REPLY:2} __rk_i=${REPLY::2} REPLY=$__rk_o __rk_p=$__rk_s __rk_s=143 __rk_b=1;
for __rk_1 in 1; do
__rk_set "$__rk_p";
eval "$__rk_c" <&"$__rk_i" >&14 2>&15;
done;
__rk_s=$?;
done; } 249<&- 250<&- 251>&- 252<&- 253>&- 254>&-
""".strip().replace("\n", " ")
"""What a session's bash runs. A command's `break` and `continue` end at the loop of one turn around it."""


class CommandReport(NamedTuple):
    """What the shell said after a command."""

    nonce: bytes
    status: int
    directory: str


def message(command: bytes, place: int, nonce: bytes) -> bytes:
    """What is sent to have a command run. It holds no NUL."""
    return b"%d%b\0%b\0" % (place, command, nonce)


def parse_reports(data: bytearray) -> list[CommandReport]:
    """Take the complete reports out of `data`. What is no report, because a command found the way, is passed over."""
    reports = []
    while (end := data.find(0)) >= 0:
        parts = bytes(data[:end]).split(b" ", 2)
        del data[: end + 1]
        if len(parts) == 3 and parts[1].isdigit():  # noqa: PLR2004
            reports.append(CommandReport(parts[0], int(parts[1]), parts[2].decode(errors="surrogateescape")))
    return reports
