# SPDX-License-Identifier: Apache-2.0
"""An MCP server that runs as a process on this machine, spoken to over its standard input and output.

The process is not isolated: it runs as you, with your files and your network. Only its environment is bare: a few
variables and those that it is given, so that no key reaches it by accident.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from reward_kit.agent.mcp.contract import Bounds, McpServerFailure
from reward_kit.agent.mcp.inbox import Inbox, Lines, WithInbox
from reward_kit.agent.mcp.protocol import encode
from reward_kit.workers.process import kill_group
from reward_kit.workers.programs import end_program, start_program

__all__ = ["StdioChannel"]

_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_CHUNK = 1 << 16
_GRACE = 2.0
"""Seconds that a server has to end by itself when its input has ended."""
_PROGRAMS = (".bash", ".cjs", ".jar", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".sh", ".ts")
"""How the names of files end that a command runs, and that are no data."""


class StdioChannel(WithInbox):
    """A connection to a process that it owns."""

    def __init__(
        self, process: asyncio.subprocess.Process, name: str, bounds: Bounds, folder: str | None = None
    ) -> None:
        """Speak to a process whose three streams are pipes, and which leads a process group of its own.

        `folder` is removed with it.
        """
        self._folder = folder
        self._process = process
        self._name = name
        self._bounds = bounds
        self._inbox = Inbox(bounds, self._write)
        self._last_words = b""
        self._failure: McpServerFailure | None = None
        self._closing: asyncio.Task[None] | None = None
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_errors())]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | None = None,
        bounds: Bounds | None = None,
    ) -> StdioChannel:
        """Start a server, in a `directory`, or else in an empty one of its own: no other server writes its files."""
        folder = tempfile.mkdtemp(prefix="reward-kit-mcp-") if directory is None else None
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await start_program(
                command if folder is None else [*map(_found_from_elsewhere, command)],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=kept | ({} if folder is None else {"PYTHONPATH": os.getcwd()}) | dict(environment),
                cwd=directory or folder,
            )
        except OSError as error:
            _remove(folder)
            raise McpServerFailure(
                f"The MCP server {command[0]!r} cannot be started: {error.strerror}. Check the command, and its path.",
                retryable=False,
            ) from error
        return cls(process, command[0], bounds or Bounds(), folder)

    @property
    def alive(self) -> bool:
        """Whether a request has a chance."""
        return self._failure is None and self._closing is None and self._process.returncode is None

    async def exchange(
        self,
        message: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        timeout: float | None,
    ) -> dict[str, Any]:
        """Send a request and wait for its reply."""
        request = message["id"]
        reply = self._inbox.expect(request)
        try:
            async with asyncio.timeout(timeout):
                await self._send(message)
                return await reply
        except (TimeoutError, asyncio.CancelledError):
            reason = {"requestId": request, "reason": "nobody waits for it any more"}
            if message.get("method") != "initialize":
                self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason})
            raise
        finally:
            self._inbox.give_up(request)

    async def notify(self, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> None:
        """Send what has no reply."""
        await self._send(message)

    async def close(self) -> None:
        """Close its input, give it a moment, and kill it with what it started."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    # ── in and out ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, message: Mapping[str, Any]) -> None:
        """Send without waiting. A server that has gone is noticed by those who read."""
        assert self._process.stdin is not None
        if self._failure is None and not self._process.stdin.is_closing():
            self._process.stdin.write(encode(message) + b"\n")

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self._failure is not None:
            raise self._failure
        assert self._process.stdin is not None
        self._write(message)
        with suppress(ConnectionError):  # the reader knows more of how it ended, and tells whoever waits
            await self._process.stdin.drain()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = Lines(self._inbox)
        try:
            while data := await self._process.stdout.read(_CHUNK):
                lines.take(data)
            failure = await self._how_it_ended()
        except McpServerFailure as error:
            failure = error
            kill_group(self._process.pid)
        self._failure = failure
        self._inbox.fail(failure)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_CHUNK):
            self._last_words = (self._last_words + data)[-self._bounds.stderr_bytes :]

    async def _how_it_ended(self) -> McpServerFailure:
        """Its output has ended: mostly because it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        status = self._process.returncode
        how = "closed its output" if status is None else f"ended with status {status}"
        words = self._last_words.decode(errors="replace").strip()
        said = f" The end of what it wrote to its error output: {words[-1000:]}" if words else ""
        return McpServerFailure(f"The MCP server {self._name!r} {how} while it was needed.{said}")

    async def _close(self) -> None:
        assert self._process.stdin is not None
        if self._failure is None:
            self._failure = McpServerFailure(f"The connection to the MCP server {self._name!r} is closed.")
        self._inbox.fail(self._failure)
        self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        await end_program(self._process, _GRACE)  # also what it left behind
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._process._transport.close()  # type: ignore[attr-defined]  # a stranger may still hold the pipes open
        await asyncio.to_thread(_remove, self._folder)


def _found_from_elsewhere(argument: str) -> str:
    """A part of a command, as a full path where it names a program in this directory, such as `tools/x.py:Shop`."""
    path = argument.partition(":")[0]
    is_program = path.endswith(_PROGRAMS) or (os.sep in path and os.access(path, os.X_OK))
    if not is_program or argument.startswith("-") or not os.path.isfile(path):
        return argument
    return os.path.abspath(path) + argument[len(path) :]


def _remove(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
