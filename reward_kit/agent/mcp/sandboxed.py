# SPDX-License-Identifier: Apache-2.0
"""An MCP server that runs in a sandbox, whichever backend makes it: spoken to by commands of the sandbox's own shell.

    shell: server < in > out &      then, for each request:  cat > in · read from out

So nothing is asked of a backend but what all of them do. Requests take turns. What the server writes to its error
output is in a file of the sandbox.
"""

from __future__ import annotations

import asyncio
import base64
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.agent.mcp.contract import Bounds, McpServerFailure
from reward_kit.agent.mcp.inbox import Inbox, Lines, WithInbox
from reward_kit.agent.mcp.protocol import encode
from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Sandbox

__all__ = ["OUTPUT_BYTES", "SandboxedChannel"]

OUTPUT_BYTES = 1 << 20
"""Output of one command that a sandbox must let through."""
_LOOK = 1.0
"""Seconds that one command waits for output, so that whoever has given up holds the shell no longer."""
# The first byte is waited for by the shell, byte by byte being slow; the rest of what is there is taken at once.
_READ = (
    f"IFS= read -r -d '' -t {_LOOK:g} -n 1 __rk_l <&8; __rk_r=$?; "
    '[ $__rk_r = 0 ] && { printf %s "$__rk_l"; read -t 0 <&8 && dd bs=65536 count=1 <&8 2>/dev/null; } | base64; '
    "(exit $__rk_r)"
)
_LATE = 10.0
"""Seconds on top within which a command must be back."""
_END_OF_OUTPUT = 1


class SandboxedChannel(WithInbox):
    """A connection to a server in a sandbox that it owns."""

    def __init__(self, sandbox: Sandbox, name: str, bounds: Bounds) -> None:
        """The server has been started by `start`."""
        self._sandbox = sandbox
        self._name = name
        self._lock = asyncio.Lock()
        self._late_answers: list[dict[str, Any]] = []
        self._inbox = Inbox(bounds, self._late_answers.append)
        self._lines = Lines(self._inbox)
        self._failure: McpServerFailure | None = None
        self._turns: set[asyncio.Task[Any]] = set()

    @classmethod
    async def start(cls, sandbox: Sandbox, command: Sequence[str], bounds: Bounds | None = None) -> SandboxedChannel:
        """Start a server in `sandbox`, in the directory where its shell is."""
        script = (
            "__rk=$(mktemp -d) && mkfifo $__rk/in $__rk/out && "
            f"{{ {shlex.join(command)} <$__rk/in >$__rk/out 2>$__rk/errors & }} && "
            "exec 7>$__rk/in 8<$__rk/out && rm $__rk/in $__rk/out && LC_ALL=C"
        )
        channel = cls(sandbox, command[0], bounds or Bounds())
        done = await channel._run(script)
        if not done.ok:
            raise McpServerFailure(
                f"The MCP server {command[0]!r} cannot be started in its sandbox: {done.output[:500]}"
            )
        return channel

    @property
    def alive(self) -> bool:
        """Whether a request has a chance."""
        return self._failure is None

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
        # A command that is cancelled takes the shell with it. So the turn is a task of its own, which ends soon after.
        turn = asyncio.create_task(self._turn(message, reply))
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)
        try:
            async with asyncio.timeout(timeout):
                waited_for: list[asyncio.Future[Any]] = [reply, turn]
                await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                await turn  # raises what kept the reply from coming
            return await reply
        except McpServerFailure as error:
            self._failure = error
            raise
        finally:
            reply.cancel()
            self._inbox.give_up(request)

    async def notify(self, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> None:
        """Send what has no reply."""
        async with self._lock:
            await self._send(message)

    async def close(self) -> None:
        """Close the sandbox, and so end the server with everything that it started."""
        self._failure = self._failure or McpServerFailure(f"The connection to the server {self._name!r} is closed.")
        await self._sandbox.close()
        await asyncio.gather(*self._turns, return_exceptions=True)

    # ── one turn ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _turn(self, message: Mapping[str, Any], reply: asyncio.Future[dict[str, Any]]) -> None:
        async with self._lock:
            if reply.done():
                return
            if self._failure is not None:
                raise self._failure
            sent: bytes | None = encode(message) + b"\n"
            while not reply.done():
                await self._read_a_piece(sent)
                sent = None
                while self._late_answers:
                    await self._send(self._late_answers.pop())
            if reply.cancelled() and message["method"] != "initialize":
                reason = {"requestId": message["id"], "reason": "nobody waits for it any more"}
                await self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason})

    async def _send(self, message: Mapping[str, Any]) -> None:
        done = await self._run("cat >&7", stdin=encode(message) + b"\n")
        if not done.ok:
            raise await self._how_it_ended("takes no requests any more")

    async def _read_a_piece(self, sent: bytes | None) -> None:
        """Wait a while for output and take what is there. As Base64, because a piece may end inside a character."""
        done = await self._run(_READ if sent is None else f"cat >&7; {_READ}", stdin=sent)
        self._lines.take(base64.b64decode(done.stdout))
        if done.exit_code == _END_OF_OUTPUT:
            raise await self._how_it_ended("ended, or closed its output,")

    async def _run(self, script: str, stdin: bytes | None = None) -> ExecResult:
        try:
            done = await self._sandbox.run(script, timeout=_LOOK + _LATE, stdin=stdin)
        except SandboxError as error:
            raise McpServerFailure(f"The sandbox of the MCP server {self._name!r} failed: {error}") from error
        if done.timed_out or done.exited:
            raise McpServerFailure(f"The MCP server {self._name!r} takes no requests, or its sandbox has ended.")
        return done

    async def _how_it_ended(self, how: str) -> McpServerFailure:
        done = await self._run("tail -c 1000 $__rk/errors")
        said = f" The end of what it wrote to its error output: {done.stdout.strip()}" if done.stdout.strip() else ""
        return McpServerFailure(f"The MCP server {self._name!r} {how} while it was needed.{said}")
