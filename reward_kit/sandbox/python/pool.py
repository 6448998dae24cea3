# SPDX-License-Identifier: Apache-2.0
"""Python programs and functions, run many times, each in a sandbox of its own that costs little more than a fork.

    async with PythonZygote() as zygotes:
        result = await zygotes.run("print(input()[::-1])", stdin=b"abc")            # an ExecResult
        outcomes = await zygotes.call("def f(x): return x + 1", "f", [[1], [2]])    # CallOutcomes with 2 and 3

A zygote is a process that has Python and the usual modules loaded, and forks into a new sandbox for every run: process,
mount, IPC, host name and network spaces of its own, another user, no privileges, a system-call filter, an empty /tmp
and a directory with the run's files. Nothing that a run writes survives it; docs/sandbox.md lists what can be noticed.

Covered: reading or writing the machine's files (its programs and libraries can be read), environment, processes and
network; memory, CPU time, processes, file sizes, open files, output and time beyond the limits; leaving processes
behind; forging a result. Not covered: bugs of the kernel; runs of one zygote share its string hash seed and the
layout of its memory. Without control groups the memory of all processes together is looked at every few hundredths of
a second, and one that asks for more than all may have gets a MemoryError. As an ordinary user (where the kernel allows
user namespaces) programs run as that user, seeing as little.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import site
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import Any, Final, Literal, Self

from reward_kit.errors import ConfigError, SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits, Probe
from reward_kit.sandbox.isolated_python import CallOutcome, JudgeOutcome, running_loop
from reward_kit.sandbox.python.messages import MAIN, SOLUTION, Frame, longest
from reward_kit.sandbox.python.plain import decode, encode
from reward_kit.sandbox.python.process import ADVICE, Zygote
from reward_kit.sandbox.python.root import HIDDEN
from reward_kit.utils.closing import ClosedAfterwards

__all__ = ["PythonZygote"]

_GRACE_SECONDS: Final = 30.0
_LIMITS: Final = Limits()
_NO_FILES: Final[Mapping[str, bytes]] = {}


class PythonZygote(ClosedAfterwards):
    """A pool of zygotes. Each does one thing at a time; those that die are replaced."""

    def __init__(
        self,
        *,
        size: int | None = None,
        limits: Limits = _LIMITS,
        preload: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        """`size` zygotes (one per core), in the interpreter `python` with the modules `preload` imported.

        Left out, it is this interpreter, with what is installed for it and for this user. One that is named needs
        Python 3.11 or newer.
        """
        self._limits = limits
        self._preload = tuple(preload)
        self._python = python or sys.executable
        self._packages = _own_packages() if python is None else ()
        self._idle: asyncio.LifoQueue[Zygote | None] = asyncio.LifoQueue()
        self._size = size or os.cpu_count() or 1
        for _ in range(self._size):
            self._idle.put_nowait(None)
        self._alive: set[Zygote] = set()
        self._others: dict[str, PythonZygote] = {}
        self._closed = False
        self.loop = running_loop()
        """The event loop that they live on; None before they are first used."""

    async def start_one(self) -> None:
        """Start a zygote now: a `SandboxError` says why none can be."""
        await self._warm()

    async def start(self) -> None:
        """Start every zygote now, instead of when it is first needed."""
        started = await asyncio.gather(*[self._warm() for _ in range(self._size)], return_exceptions=True)
        for error in started:
            if error is not None:
                await self.close()
                raise error

    async def close(self) -> None:
        """End every zygote and everything in it. What still runs fails with a `SandboxError`. May be called twice."""
        self._closed = True
        ended = [self._retire(zygote) for zygote in list(self._alive)]
        await asyncio.gather(*ended, *[other.close() for other in self._others.values()])

    def abandon(self) -> None:
        """In a forked copy of the process that started them: close our copies of the connections, and nothing else."""
        self._closed = True
        for zygote in self._alive:
            zygote.abandon()
        for other in self._others.values():
            other.abandon()

    @property
    def interpreter(self) -> str:
        """The path of the interpreter."""
        return self._python

    def using(self, python: str) -> PythonZygote:
        """As many zygotes of another interpreter, by path or name; they are closed with these."""
        found = shutil.which(python)
        if found is None:
            raise ConfigError(f"There is no interpreter {python!r}. Give its path, or its name on the PATH.")
        path = os.path.abspath(found)
        if path not in self._others:
            self._others[path] = PythonZygote(size=self._size, limits=self._limits, preload=self._preload, python=path)
        return self._others[path]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    # ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Run `code` as `python main.py` would, in a directory that holds `files`.

        What the program started ends with it. A program that runs out of its time or CPU time has `timed_out`.
        """
        header, seconds = self._header("run", files, timeout, limits)
        header |= {"source": MAIN, "argv": list(argv)}
        blobs = [stdin, _source(code, MAIN, files), *files.values()]
        async with self._zygote() as zygote:
            answer = await zygote.ask(header, blobs, longest(seconds) + _GRACE_SECONDS)
        return _exec_result(answer)

    # ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Load `code` as a module and call `function` once for each list of arguments; one outcome a call.

        `function` is a name or an expression in the module, as `Solution().solve`. Time and CPU time are limited for
        each call on its own, and for loading. `isolated`: each call runs in a copy of the process as it was when the
        code had been loaded, and nothing of a call lasts until the next; without it they run in one process, as in an
        ordinary test file, which is cheaper, and means the same for code that keeps nothing.
        `stop_early`: the first call that does not return is the last to be made. `most_lost`: so is one that runs out
        of time when so many seconds have been lost in that way. `look_after`: so is one that is made when so many
        seconds have passed, so that the caller can look at results before more are made. `loose`: a returned iterator,
        range or view is the list of what it gives, and a decimal or fraction a number; else these are not plain data.

        What the results should be stays here: the sandbox is never given it.
        """
        header, seconds = self._header("call", files, timeout, limits)
        header |= {"source": SOLUTION, "function": function, "isolated": isolated, "stop_early": stop_early}
        header |= {"loose": loose, "look_after": look_after, "most_lost": most_lost}
        calls = [encode(list(given)).encode() for given in arguments]
        return await self._calls(header, [_source(code, SOLUTION, files), *files.values()], calls, seconds)

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
        """Run `code` as a program once for each input; what it printed is the value of an outcome.

        `isolated`: each in a copy of the process that has compiled it, with no file of another run. Without it they run
        in one process, for programs that leave nothing there. Exit codes other than 0 are `raised`.
        """
        header, seconds = self._header("call", _NO_FILES, timeout, limits)
        header |= {"source": MAIN, "function": None, "isolated": isolated, "stop_early": stop_early}
        header |= {"look_after": look_after, "most_lost": most_lost}
        return await self._calls(header, [_source(code, MAIN, _NO_FILES)], inputs, seconds)

    async def _calls(
        self, header: dict[str, Any], task: list[bytes], calls: Sequence[bytes], seconds: float
    ) -> list[CallOutcome]:
        header["answer_bytes"] = header["limits"]["output_bytes"]
        async with self._zygote() as zygote:
            within = 2 * longest(seconds) * (len(calls) + 1) + _GRACE_SECONDS
            answer = await zygote.ask(header, [*task, *calls], within)
        return _call_outcomes(answer, len(calls))

    # ── test programs ────────────────────────────────────────────────────────────────────────────────────────────────

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
        """Run test programs against `code`, in a process that the code cannot reach and that never loads it.

        A test is Python source: asserts that use the code's names, `check(candidate)`, which is given `entry_point`,
        functions called `test…`, unittest's classes, or a file for pytest. The code is the module `solution`, and
        every one of `modules` that is not there. `setup` is
        run before them, beside them. What crosses to the code and back is plain data. Time and CPU time are limited
        for all of them together. `stop_early`: the first test that fails is the last.
        """
        header, seconds = self._header("judge", files, timeout, limits)
        header |= {"source": SOLUTION, "entry_point": entry_point, "modules": list(modules), "stop_early": stop_early}
        blobs = [json.dumps(list(tests)).encode(), setup.encode(), _source(code, SOLUTION, files), *files.values()]
        async with self._zygote() as zygote:
            answer = await zygote.ask(header, blobs, longest(seconds) + _GRACE_SECONDS)
            exposed = not zygote.traits["privileged"]
        return replace(_judge_outcome(answer), exposed=exposed)

    # ── the self-test ────────────────────────────────────────────────────────────────────────────────────────────────

    async def probe(self) -> Probe:
        """Try it for real: run a program that looks at where it is."""
        try:
            async with self._zygote() as zygote:
                traits = zygote.traits
            result = await self.run("import os, sys; print(os.getpid(), *sys.version_info[:3], sep='.')")
        except SandboxError as error:
            return Probe(False, str(error), ADVICE)
        if not result.ok:
            return Probe(False, f"a test program failed: {result.output.strip()!r}", ADVICE)
        version = result.stdout.strip().partition(".")[2]
        who = "as another user" if traits["privileged"] else "in user namespaces"
        memory = (
            "by a control group" if traits["memory"] else "by watching its processes (no control group can be made)"
        )
        return Probe(True, f"Python {version} ({self._python}), {who}, memory limited {memory}")

    # ── the pool ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _zygote(self) -> AsyncIterator[Zygote]:
        """One zygote for our use alone. It goes back only when all went well with it."""
        self.loop = self.loop or asyncio.get_running_loop()
        zygote = await self._idle.get()
        try:
            if zygote is not None and not zygote.alive:
                await self._retire(zygote)
                zygote = None
            if zygote is None:
                zygote = await self._begin()
            yield zygote
        except BaseException:
            if zygote is not None:
                await asyncio.shield(self._retire(zygote))
                zygote = None
            raise
        finally:
            self._idle.put_nowait(zygote)

    async def _begin(self) -> Zygote:
        if self._closed:
            raise SandboxError("these zygotes are closed. Make a new PythonZygote.", retryable=False)
        if sys.platform != "linux":
            raise SandboxError(f"zygotes need Linux, and this is {sys.platform!r}. Use docker.", retryable=False)
        zygote = await Zygote.start(self._python, self._preload, self._packages)
        self._alive.add(zygote)
        return zygote

    async def _warm(self) -> None:
        async with self._zygote():
            pass

    async def _retire(self, zygote: Zygote) -> None:
        self._alive.discard(zygote)
        await zygote.close()

    def _header(
        self, do: str, files: Mapping[str, bytes], timeout: float | None, limits: Limits | None
    ) -> tuple[dict[str, Any], float]:
        chosen = limits or self._limits
        seconds = chosen.timeout if timeout is None else timeout
        _check_names(files)
        return {"do": do, "files": list(files), "timeout": seconds, "limits": asdict(chosen)}, seconds


def _own_packages() -> tuple[str, ...]:
    """What is installed for this user alone, which an isolated interpreter does not look at by itself."""
    own = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    return (own,) if own in sys.path and not any(PurePosixPath(own).is_relative_to(place) for place in HIDDEN) else ()


def _check_names(files: Mapping[str, bytes]) -> None:
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ConfigError(f"the file name {name!r} is not inside the run's directory. Give a relative name.")


def _source(code: str, name: str, files: Mapping[str, bytes]) -> bytes:
    if name in files:
        raise ConfigError(f"the file {name!r} is where the code itself will be. Give it another name.")
    return code.encode(errors="surrogatepass")


def _exec_result(answer: Frame) -> ExecResult:
    stdout, stderr, both = [blob.decode(errors="replace") for blob in answer.blobs]
    return ExecResult(stdout=stdout, stderr=stderr, output=both or stdout or stderr, **answer.header)


def _judge_outcome(answer: Frame) -> JudgeOutcome:
    facts = answer.header["verdict"]
    content = answer.blobs[0].decode(errors="replace")
    if facts["kind"] == "loaded":
        return JudgeOutcome("judged", tuple((str(name), error) for name, error in json.loads(content)))
    kinds: dict[str, Literal["timed_out", "unjudgeable"]] = {"timed_out": "timed_out", "unjudgeable": "unjudgeable"}
    return JudgeOutcome(kinds.get(facts["kind"], "died"), error=content, oom_killed=facts["oom_killed"])


def _call_outcomes(answer: Frame, calls: int) -> list[CallOutcome]:
    rows = zip(answer.header["outcomes"], answer.blobs, strict=True)
    made = [_call_outcome(row, content) for row, content in rows]
    return made + [CallOutcome("skipped")] * (calls - len(made))


def _call_outcome(row: dict[str, Any], content: bytes) -> CallOutcome:
    facts = {name: row[name] for name in ("oom_killed", "wall_seconds")}
    text = content.decode(errors="replace")
    if row["kind"] != "returned":
        return CallOutcome(row["kind"], error=text, **facts)
    try:
        return CallOutcome("returned", decode(text), **facts)
    except ValueError as error:
        return CallOutcome("died", error=f"what it answered cannot be read: {error}", **facts)
