# SPDX-License-Identifier: Apache-2.0
"""Isolated Python by commands, in any sandbox that runs them: slower than zygotes, and wherever there is a sandbox.

    a fresh sandbox ─▶ write the code ─▶ one command per program, input or call ─▶ outcomes ─▶ the sandbox is gone

What is expected stays here. A returned value comes back as text after a mark that is new for each call; whoever writes
the mark gives an answer, and it is his own. Tests run in a process of their own, which holds them and the mark, as
another user than the code (`inside/by_command.py`). Each may take so much processor time, and more by the clock, for
the machine may be busy.
"""

from __future__ import annotations

import asyncio
import functools
import io
import json
import math
import secrets
import shlex
import signal
import time
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from importlib.resources import files as files_of
from typing import Any, Final, Protocol

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.isolated_python import CallOutcome, JudgeOutcome, running_loop
from reward_kit.sandbox.python.messages import MAIN, SOLUTION, lost
from reward_kit.sandbox.python.plain import decode, encode

__all__ = ["CommandSandbox", "OpenCommandSandbox", "PythonByCommands", "longest_by_the_clock", "run_within"]

_LIMITS: Final = Limits()
_NO_FILES: Final[Mapping[str, bytes]] = {}
_BOX: Final = "box"
"""Where the code is, and where it runs."""
_HARNESS: Final = "harness.zip"
_START: Final = (
    f"import sys; sys.path.insert(0, '../{_HARNESS}'); "
    "sys.version_info < (3, 11) and sys.exit('Python 3.11 or newer is needed'); "
    "from reward_kit.sandbox.python.inside.by_command import main; main()"
)
_PARTS: Final = (
    *("messages", "plain", "inside.by_command", "inside.frameworks", "inside.names", "inside.objects"),
    *("inside.plan", "inside.program", "inside.remote", "inside.statements", "inside.tests"),
)
_OWN_MB: Final = 64
"""What an interpreter takes itself, beside its program."""
_BUSY: Final = 4
"""How much longer than its processor time a program may take by the clock."""
_LOOK_AFTER: Final = 5.0
"""Seconds to go on for even where the caller wants to look at results sooner: the rest takes a new sandbox."""
_TOOL_SECONDS: Final = 60.0
_SIGNALLED: Final = 128


class CommandSandbox(Protocol):
    """What is needed of a sandbox."""

    async def write(self, path: str, content: bytes) -> None:
        """Write a file, relative to where commands run."""
        ...

    async def read(self, path: str) -> bytes:
        """Read such a file; an `OSError` where there is none."""
        ...

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run a command as a process of its own, and return what it did."""
        ...


OpenCommandSandbox = Callable[[Limits], AbstractAsyncContextManager[CommandSandbox]]
"""Opens a fresh sandbox with these limits."""


def longest_by_the_clock(seconds: float) -> float:
    """How long something that may take `seconds` of processor time may take by the clock."""
    return _BUSY * seconds + 5


async def run_within(place: CommandSandbox, command: str, seconds: float, stdin: bytes) -> ExecResult:
    """Run a command within its processor time. One that runs out of it has `timed_out`."""
    cpu = max(1, math.ceil(seconds))
    limited = f"ulimit -St {cpu}; ulimit -Ht {cpu + 1}; {command}"
    result = await place.run_standalone(limited, timeout=longest_by_the_clock(seconds), stdin=stdin)
    codes = (signal.SIGXCPU, _SIGNALLED + signal.SIGXCPU)
    if result.signal in codes or result.exit_code in codes[1:]:
        return result.model_copy(update={"timed_out": True, "exit_code": None})
    return result


class PythonByCommands:
    """Python in sandboxes that run commands: one per request, closed after it."""

    def __init__(
        self, open_place: OpenCommandSandbox, python: str = "python3", *, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """In sandboxes that `open_place` opens on `loop` (or on the one we are on), by their interpreter `python`."""
        self._open = open_place
        self._python = python
        self.loop = loop or running_loop()
        """The event loop that the sandboxes live on."""

    @property
    def interpreter(self) -> str:
        """Which of the sandbox's interpreters it is."""
        return f"the sandbox's {self._python}"

    def using(self, python: str) -> PythonByCommands:
        """The same by another interpreter of the sandbox, by path or name."""
        return PythonByCommands(self._open, python, loop=self.loop)

    async def close(self) -> None:
        """Nothing stays open between requests."""

    async def run(
        self,
        code: str,
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] = _NO_FILES,
        argv: Sequence[str] = (),
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """Run `code` as `python main.py` would, in a directory that holds `files`."""
        async with self._place(limits, {MAIN: code.encode(errors="surrogatepass"), **files}) as place:
            return await self._program(place, stdin, _seconds(timeout, limits), argv)

    async def run_each(
        self,
        code: str,
        inputs: Sequence[bytes],
        *,
        isolated: bool = True,
        stop_early: bool = False,
        most_lost: float = 1e9,
        look_after: float = 1e9,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> list[CallOutcome]:
        """Run `code` as a program once for each input, each time in a process of its own, in one sandbox."""
        seconds = _seconds(timeout, limits)

        async def run(given: bytes) -> CallOutcome:
            done = await self._program(place, given, seconds)
            return _printed(done)

        async with self._place(limits, {MAIN: code.encode(errors="surrogatepass")}) as place:
            return await _in_turn(inputs, run, seconds, stop_early, most_lost, look_after)

    async def call(  # noqa: PLR0913 - each is a choice of its own
        self,
        code: str,
        function: str,
        arguments: Sequence[Sequence[object]],
        *,
        isolated: bool = True,
        stop_early: bool = False,
        most_lost: float = 1e9,
        look_after: float = 1e9,
        loose: bool = False,
        files: Mapping[str, bytes] = _NO_FILES,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> list[CallOutcome]:
        """Load `code` and call `function` for each list of arguments, each in a process of its own, in one sandbox."""
        seconds = _seconds(timeout, limits)
        calls = [encode(list(given)) for given in arguments]

        async def call(given: str) -> CallOutcome:
            mark = secrets.token_hex(16)
            request = json.dumps({"mark": mark, "function": function, "loose": loose})
            done = await self._harness(place, "call", f"{request}\n{given}".encode(), seconds)
            return _called(done, mark)

        async with self._place(limits, {SOLUTION: code.encode(errors="surrogatepass"), **files}) as place:
            await place.write(_HARNESS, _harness())
            return await _in_turn(calls, call, seconds, stop_early, most_lost, look_after)

    async def judge(  # noqa: PLR0913 - each is a choice of its own
        self,
        code: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        setup: str = "",
        modules: Sequence[str] = (),
        stop_early: bool = False,
        files: Mapping[str, bytes] = _NO_FILES,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> JudgeOutcome:
        """Run test programs against `code`, in a process that the code cannot look into and that never loads it."""
        mark = secrets.token_hex(16)
        request: dict[str, Any] = {"mark": mark, "tests": list(tests), "setup": setup, "entry_point": entry_point}
        request |= {"modules": list(modules), "stop_early": stop_early}
        async with self._place(limits, {SOLUTION: code.encode(errors="surrogatepass"), **files}) as place:
            await place.write(_HARNESS, _harness())
            given = f"{json.dumps(request)}\n".encode()
            done = await self._harness(place, "judge", given, _seconds(timeout, limits))
        return _judged(done, mark)

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _place(self, limits: Limits | None, files: Mapping[str, bytes]) -> AsyncIterator[CommandSandbox]:
        """A fresh sandbox that has the interpreter, with these files where the code runs."""
        chosen = limits or _LIMITS
        async with self._open(replace(chosen, memory_mb=chosen.memory_mb + _OWN_MB)) as place:
            if not (await place.run_standalone(f"command -v {shlex.quote(self._python)}", timeout=_TOOL_SECONDS)).ok:
                raise SandboxError(
                    f"The sandbox has no {self._python!r}. Use an image that has it: set `sandbox.image`, for instance "
                    "to 'python:3.12-slim'.",
                    retryable=False,
                )
            for name, content in files.items():
                await place.write(f"{_BOX}/{name}", content)
            yield place

    async def _program(
        self, place: CommandSandbox, stdin: bytes, seconds: float, argv: Sequence[str] = ()
    ) -> ExecResult:
        command = f"cd {_BOX}; exec {shlex.join([self._python, MAIN, *argv])}"
        return await run_within(place, command, seconds, stdin)

    async def _harness(self, place: CommandSandbox, what: str, stdin: bytes, seconds: float) -> ExecResult:
        command = f"cd {_BOX}; exec {shlex.join([self._python, '-I', '-c', _START, what])}"
        done = await run_within(place, command, seconds, stdin)
        if done.exit_code == 1 and done.stderr.strip() == "Python 3.11 or newer is needed":
            raise SandboxError(
                f"{self.interpreter} is too old: Python 3.11 or newer is needed. Choose another `sandbox.image`.",
                retryable=False,
            )
        return done


@functools.cache
def _harness() -> bytes:
    """What runs beside the code and its tests, as an archive that an interpreter imports from."""
    package = files_of("reward_kit.sandbox.python")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("", "sandbox/", "sandbox/python/", "sandbox/python/inside/"):
            archive.writestr(f"reward_kit/{name}__init__.py", "")
        for part in _PARTS:
            path = f"{part.replace('.', '/')}.py"
            archive.writestr(f"reward_kit/sandbox/python/{path}", package.joinpath(path).read_bytes())
    return content.getvalue()


def _seconds(timeout: float | None, limits: Limits | None) -> float:
    return (limits or _LIMITS).timeout if timeout is None else timeout


async def _in_turn(
    given: Sequence[Any],
    work: Callable[[Any], Awaitable[CallOutcome]],
    seconds: float,
    stop_early: bool,
    most_lost: float,
    look_after: float,
) -> list[CallOutcome]:
    """One outcome for each; those that come after the last to be made are `skipped`."""
    found: list[CallOutcome] = []
    began, lost_time = time.monotonic(), 0.0
    for each in given:
        found.append(await work(each))
        if found[-1].kind == "timed_out":
            lost_time += lost(seconds, found[-1].wall_seconds)
        late = time.monotonic() - began > max(look_after, _LOOK_AFTER)
        if (stop_early and not found[-1].ok) or lost_time >= most_lost or late:
            break
    return found + [CallOutcome("skipped")] * (len(given) - len(found))


# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _printed(done: ExecResult) -> CallOutcome:
    """The outcome of a program: what it printed, where it ended as programs that succeed do."""
    if not done.ok:
        return _failed(done)
    if done.truncated:
        return _outcome(done, "raised", error="ValueError: it printed more than can be looked at")
    return _outcome(done, "returned", value=done.stdout)


def _called(done: ExecResult, mark: str) -> CallOutcome:
    """The outcome of a call."""
    answer = _marked(done, mark)
    if answer is None or not done.ok:
        return _failed(done, "the process ended before it answered")
    kind, content = answer[:1], answer[1:]
    if kind != "R":
        loading = "while the code was loaded: " if kind == "L" else ""
        return _outcome(done, "raised", error=loading + content)
    if done.truncated:
        return _outcome(done, "raised", error="ValueError: the returned value is too long to be looked at")
    try:
        return _outcome(done, "returned", value=decode(content))
    except (ValueError, RecursionError) as error:
        return _outcome(done, "died", error=f"what it answered cannot be read: {error}")


def _judged(done: ExecResult, mark: str) -> JudgeOutcome:
    """What test programs said. The code cannot have ended them where it was another user."""
    exposed = f"{mark}:apart" not in done.stdout and f"{mark}:exposed" in done.stdout
    answer = _marked(done, mark)
    if done.timed_out:
        return JudgeOutcome("timed_out", exposed=exposed)
    if answer is None or done.oom_killed or done.truncated:
        ended = done.stderr.strip()[-500:] or f"exit code {done.exit_code}, signal {done.signal}"
        return JudgeOutcome("died", error=ended, oom_killed=done.oom_killed, exposed=exposed)
    kind, content = answer[:1], answer[1:]
    if kind != "L":
        return JudgeOutcome("unjudgeable" if kind == "U" else "died", error=content, exposed=exposed)
    verdicts = tuple((str(name), error) for name, error in json.loads(content))
    return JudgeOutcome("judged", verdicts, exposed=exposed)


def _marked(done: ExecResult, mark: str) -> str | None:
    """What stands behind the mark in the output, if it is there."""
    before, _, answer = done.stdout.rpartition(f"{mark}=")
    return answer if before else None


def _failed(done: ExecResult, otherwise: str = "") -> CallOutcome:
    """The outcome of what did not come to its proper end."""
    if done.timed_out:
        return _outcome(done, "timed_out")
    if done.oom_killed or done.signal is not None or done.exit_code is None or done.exit_code > _SIGNALLED:
        how = otherwise or f"it was ended by signal {done.signal or (done.exit_code or 0) - _SIGNALLED}"
        return _outcome(done, "died", error=how)
    if otherwise:
        return _outcome(done, "died", error=f"{otherwise}: {done.stderr.strip()[-300:]}")
    return _outcome(done, "raised", error=f"exited with {done.exit_code}: {done.stderr.strip()[-300:]}")


def _outcome(done: ExecResult, kind: Any, *, value: Any = None, error: str = "") -> CallOutcome:
    oom = kind == "died" and done.oom_killed
    return CallOutcome(kind, value, error, oom_killed=oom, wall_seconds=done.wall_seconds)
