# SPDX-License-Identifier: Apache-2.0
"""What isolated Python is: programs and functions run many times, each where it can touch nothing.

    isolated_python.run(code) ─▶ ExecResult             a program
                   .run_each(code, inputs) ─▶ outcomes   the same program, once per input
                   .call(code, function, arguments) ─▶ outcomes
                   .judge(code, tests) ─▶ JudgeOutcome   test programs, which the code cannot reach

Two things do this: zygotes (`PythonZygote`), which cost little more than a fork, and commands in any sandbox
(`PythonByCommands`). A program that fails is a value; what cannot run anything is a `SandboxError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits

__all__ = ["CallOutcome", "IsolatedPython", "JudgeOutcome", "running_loop"]


@dataclass(frozen=True)
class CallOutcome:
    """What became of one call."""

    kind: Literal["returned", "raised", "timed_out", "died", "skipped"]
    """`died`: the process ended before the function did. `skipped`: an earlier call was the last to be made."""
    value: Any = None
    """What was returned, in built-in types only: numbers, text, bytes, None, and lists, tuples, sets, dicts of them."""
    error: str = ""
    """The exception, or how the process ended. Written by the code under test: to be shown, not trusted."""
    oom_killed: bool = False
    """It died because it exceeded its memory."""
    wall_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the function returned a value, instead of raising, hanging or ending its process."""
        return self.kind == "returned"


@dataclass(frozen=True)
class JudgeOutcome:
    """What test programs said of code."""

    kind: Literal["judged", "timed_out", "died", "unjudgeable"]
    """`unjudgeable`: the tests themselves cannot be run, whatever the code is. `died`: their process was ended."""
    verdicts: tuple[tuple[str, str | None], ...] = ()
    """Each test's name, and what was wrong; None where nothing was."""
    error: str = ""
    oom_killed: bool = False
    exposed: bool = False
    """The code could have ended the tests' process, because both are the same user."""

    @property
    def ok(self) -> bool:
        """Whether the tests could be run, and every one of them passed."""
        return self.kind == "judged" and all(error is None for _, error in self.verdicts)


class IsolatedPython(Protocol):
    """Runs Python that can touch nothing. What a reward that names `isolated_python` is handed."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that its methods must be awaited on; None as long as any will do."""
        ...

    @property
    def interpreter(self) -> str:
        """Which interpreter runs the code, in words."""
        ...

    def using(self, python: str) -> IsolatedPython:
        """The same with another interpreter, by path or name. A `ConfigError` where it is known that there is none."""
        ...

    async def close(self) -> None:
        """End what was started for it."""
        ...

    async def run(
        self,
        code: str,
        *,
        stdin: bytes = b"",
        files: Mapping[str, bytes] = ...,
        argv: Sequence[str] = (),
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """Run `code` as `python main.py` would, in a directory that holds `files`."""
        ...

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

        Without `isolated`, runs may share a process.
        """
        ...

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
        files: Mapping[str, bytes] = ...,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> list[CallOutcome]:
        """Load `code` as a module and call `function` once for each list of arguments; one outcome a call."""
        ...

    async def judge(  # noqa: PLR0913 - each is a choice of its own
        self,
        code: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        setup: str = "",
        modules: Sequence[str] = (),
        stop_early: bool = False,
        files: Mapping[str, bytes] = ...,
        timeout: float | None = None,
        limits: Limits | None = None,
    ) -> JudgeOutcome:
        """Run test programs against `code`, in a process that the code cannot reach and that never loads it."""
        ...


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that we are on, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
