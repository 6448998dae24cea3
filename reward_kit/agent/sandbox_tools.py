# SPDX-License-Identifier: Apache-2.0
"""Tools that are a sandbox: a shell, files and Python, in a fresh sandbox for each episode.

What a model runs there never touches this machine: it is the same sandbox that rewards run commands in, made the way
the run's `sandbox` settings say. Set-up commands and files of a sample come from its columns `setup` and `files`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.agent.environment import Attached, Environment, World, finished, opened
from reward_kit.agent.file_texts import file_text
from reward_kit.agent.tools import Tool, ToolError, tool, tools_of
from reward_kit.config_models import SandboxConfig, SandboxTool
from reward_kit.errors import DatasetError, EnvironmentFailure
from reward_kit.models import ExecResult, Sample
from reward_kit.sandbox.contract import Sandbox
from reward_kit.sandbox.from_settings import Sandboxes, open_sandboxes

__all__ = ["SandboxTools", "WithSandbox"]

_LARGEST_FILE = 4 << 20
_OPEN_AT_ONCE = 64
_ENDED = "[the shell has ended: from now on, each command runs in a shell of its own]"


class SandboxTools:
    """The tools of one open sandbox."""

    def __init__(self, box: Sandbox, seconds: float) -> None:
        """Run everything in `box`; one command may take so many seconds."""
        self._box, self._seconds = box, seconds
        self._shell_has_ended = False

    @tool(timeout=None, same_again=False)
    async def bash(self, command: str) -> str:
        """Run a command in a shell that stays open: directory and variables last.

        Args:
            command: the command, as one would type it
        """
        if self._shell_has_ended:
            return _as_text(await self._box.run_standalone(command, timeout=self._seconds))
        done = await self._box.run(command, timeout=self._seconds)
        self._shell_has_ended = done.exited
        return f"{_as_text(done)}\n{_ENDED}" if done.exited else _as_text(done)

    @tool(timeout=None, same_again=False)
    async def python(self, code: str) -> str:
        """Run a Python program, and see what it prints. Nothing of it is kept but the files it writes.

        Args:
            code: the program
        """
        return _as_text(await self._box.run_standalone("python3 -", timeout=self._seconds, stdin=code.encode()))

    @tool(timeout=None, same_again=False)
    async def read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: where the file is
        """
        try:
            content = await self._box.read(path)
        except OSError as error:
            raise ToolError(f"{path!r} cannot be read: {error.strerror or error}.", "not_found") from None
        return file_text(path, content, _LARGEST_FILE)

    @tool(timeout=None)
    async def write_file(self, path: str, content: str) -> str:
        """Write a text file. What was there is replaced; missing directories are made.

        Args:
            path: where the file goes
            content: all of its text
        """
        try:
            await self._box.write(path, content.encode())
        except OSError as error:
            raise ToolError(f"{path!r} cannot be written: {error.strerror or error}.", "not_written") from None
        return f"{len(content.encode())} bytes were written to {path}."


def _as_text(done: ExecResult) -> str:
    """What a command did, as a model is shown it."""
    output = done.output if done.output.endswith("\n") or not done.output else f"{done.output}\n"
    if done.timed_out:
        return f"{output}[it took too long and was ended]"
    if done.oom_killed:
        return f"{output}[it used too much memory and was ended]"
    if done.exit_code is None:
        return f"{output}[it was ended by signal {done.signal}]"
    return f"{output}[exit code {done.exit_code}]"


class WithSandbox(Environment):
    """An environment whose worlds have the tools of a sandbox as well."""

    def __init__(
        self, inner: Environment, offered: Sequence[SandboxTool], config: SandboxConfig, capture: Sequence[str] = ()
    ) -> None:
        """Open a sandbox beside each world of `inner`; in the end, the files in `capture` are kept as facts."""
        self._inner, self._offered, self._config, self._capture = inner, offered, config, capture
        self._opened = contextlib.AsyncExitStack()
        self._opening = asyncio.Lock()
        self._sandboxes: Sandboxes | None = None

    async def open(self, sample: Sample) -> World:
        """A world of the inner environment, with a sandbox of its own."""
        world = await opened(self._inner, sample)
        around = contextlib.AsyncExitStack()
        sandboxes = await self._provider()
        try:
            box = await around.enter_async_context(sandboxes(setup=_setup(sample), files=_files(sample)))
        except BaseException:
            await world.close_all()
            raise
        made = tools_of(SandboxTools(box, self._config.timeout))
        chosen: list[Tool] = [each for each in made if each.name in self._offered]
        world.attach(Attached(chosen, self._facts(box), around.aclose, None))
        return world

    async def close(self) -> None:
        """Close what makes the sandboxes."""
        await finished(self._inner.close())
        await self._opened.aclose()
        self._sandboxes = None

    async def _provider(self) -> Sandboxes:
        async with self._opening:
            if self._sandboxes is None:
                opening = open_sandboxes(self._config, concurrency=_OPEN_AT_ONCE)
                self._sandboxes = await self._opened.enter_async_context(opening)
            return self._sandboxes

    def _facts(self, box: Sandbox) -> Callable[[], Any] | None:
        async def captured() -> dict[str, Any]:
            return {"files": {path: await _captured(box, path) for path in self._capture}}

        return captured if self._capture else None


async def _captured(box: Sandbox, path: str) -> str | dict[str, str] | None:
    """What a file holds in the end: its text, or `{"base64": …}` where it is no text; None where there is no file."""
    try:
        content = await box.read(path)
    except OSError:
        return None
    if len(content) > _LARGEST_FILE:
        raise EnvironmentFailure(
            f"The file {path!r} has {len(content)} bytes, and at most {_LARGEST_FILE} are kept. Let the task write "
            "less, or remove the file from `agent.capture`.",
            retryable=False,
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _setup(sample: Sample) -> list[str]:
    commands = sample.columns.get("setup") or []
    if isinstance(commands, str):
        return [commands]
    if not isinstance(commands, list) or not all(isinstance(command, str) for command in commands):
        raise DatasetError(
            f"The column 'setup' of sample {sample.id!r} is not a list of commands. Correct the dataset."
        )
    return commands


def _files(sample: Sample) -> dict[str, bytes]:
    files = sample.columns.get("files") or {}
    if not isinstance(files, Mapping):
        raise DatasetError(
            f"The column 'files' of sample {sample.id!r} is not a mapping of paths to texts. Correct the dataset."
        )
    return {str(path): str(text).encode() for path, text in files.items() if text is not None}
