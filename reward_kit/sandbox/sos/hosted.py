"""One sandbox of an SoS server: its state, its trajectory, and the original server's habits.

    created ──start──▶ started ──`exit`──▶ exited ──stop──▶ stopped

No lock is held while a command runs, so that `end` works at any moment. Only the shell is taken by turns.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import time
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Sandbox
from reward_kit.sandbox.sos.protocol import ContractTerms, CreateBody, ExecAnswer, ExecBody

__all__ = ["HostedSandbox", "Refusal", "Step"]

Status = Literal["created", "started", "exited", "stopped"]
"""The states as the protocol spells them."""

_LINE_NUMBER = re.compile(r"^bash: line \d+: ", re.MULTILINE)
_CLOSE_SECONDS = 30.0


class Refusal(Exception):
    """An answer that is an error: an HTTP status, and the text of its body."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


@dataclass
class Step:
    """One command of the session, as the trajectory tells it."""

    command: str
    at: float
    answer: ExecAnswer | None = None
    """None while it runs, and for ever when it did not end by itself."""


@dataclass(eq=False)
class HostedSandbox:
    """A sandbox somebody asked for, from its creation until it is removed."""

    request: CreateBody
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: Status = "created"
    created_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None
    stopped_by_request: bool = False
    abandoned_at: float | None = None
    """When its client broke off in mid-command, unless it came back."""
    sandbox: Sandbox | None = None
    """None before it is open, and after the end."""
    opening: asyncio.Task[None] | None = None
    has_turn: bool = False
    """Whether it counts among the sandboxes that may be open at a time."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nothing of it is left."""
    trajectory: list[Step] = field(default_factory=list)
    last_standalone_exit_code: int | None = None
    _workdir: str = "/"
    _shell: asyncio.Lock = field(default_factory=asyncio.Lock)
    _running: set[asyncio.Task[ExecResult]] = field(default_factory=set)

    @property
    def terms(self) -> ContractTerms | None:
        """The contract's terms, where the client asked for them; else the original server's habits apply."""
        return self.request.contract

    def age(self) -> float:
        """Seconds since it was started, or created where it never was."""
        return time.monotonic() - (self.created_at if self.started_at is None else self.started_at)

    def information(self) -> dict[str, object]:
        """Its line in the list of sandboxes."""
        return {
            "id": self.id,
            "image": self.request.image,
            "setup_commands": self.request.joined_setup,
            "status": self.status,
            "session_command_count": len(self.trajectory),
            "last_standalone_exit_code": self.last_standalone_exit_code,
        }

    async def adopt(self, sandbox: Sandbox, setup_timeout: float) -> None:
        """Take an open sandbox for its own, and do to it what the original server does before the first command."""
        self.sandbox = sandbox
        if self.terms is None:
            ready = await sandbox.run("set -o pipefail; pwd")
            self._workdir = ready.output.strip() or "/"
            await self._original_setup(sandbox, setup_timeout)
        self.status, self.started_at = "started", time.monotonic()

    async def execute(self, body: ExecBody, timeout: float) -> ExecAnswer:
        """Run one command. One that exceeds its time is a 504 for clients that know no other word for it."""
        result = await (self._standalone if body.standalone else self._session)(body, timeout)
        if result.timed_out and self.terms is None and body.timeout is None:
            raise Refusal(504, f"Timeout waiting for marker: the command took more than {timeout:g} s and was ended")
        return ExecAnswer.of(result)

    async def end(self) -> None:
        """Close it, whatever it is doing. What it was doing is answered with a `Refusal`."""
        self.status = "stopped"
        if self.opening is not None:
            self.opening.cancel()
            await asyncio.wait([self.opening])
        sandbox, self.sandbox = self.sandbox, None
        if sandbox is not None:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await sandbox.close()
        for task in self._running:
            task.cancel()

    # ── how commands run ─────────────────────────────────────────────────────────────────────────────────────────

    async def _session(self, body: ExecBody, timeout: float) -> ExecResult:
        async with self._shell:
            if self.status == "exited":
                raise Refusal(400, "Sandbox session already exited")
            sandbox = self._open_sandbox()
            step = Step(body.command, time.monotonic())
            self.trajectory.append(step)
            result = await self._guarded(sandbox.run(body.command, timeout=timeout, stdin=body.stdin))
            if self.terms is None:
                result = _as_typed(result)
            if result.exited and self.status == "started":
                self.status = "exited"
            step.answer = ExecAnswer.of(result)
            return result

    async def _standalone(self, body: ExecBody, timeout: float) -> ExecResult:
        sandbox = self._open_sandbox()
        command = body.command
        if (
            self.terms is None
        ):  # the original's standalone commands begin in the image's directory, wherever the shell is
            command = f"cd -- {shlex.quote(self._workdir)} || exit; {command}"
        result = await self._guarded(sandbox.run_standalone(command, timeout=timeout, stdin=body.stdin))
        self.last_standalone_exit_code = ExecAnswer.of(result).exit_code
        return result

    def _open_sandbox(self) -> Sandbox:
        if self.sandbox is None or self.status not in ("started", "exited"):
            raise Refusal(400, "Sandbox not started")
        return self.sandbox

    async def _guarded(self, running: Coroutine[Any, Any, ExecResult]) -> ExecResult:
        """Await a command as a task of its own, so that `end` can end it; a broken sandbox is a 500."""
        task = asyncio.ensure_future(running)
        self._running.add(task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._running.discard(task)
        if task.cancelled() or self.status == "stopped":
            raise Refusal(500, "Container read failed: the sandbox was stopped while the command ran")
        try:
            return task.result()
        except SandboxError as error:
            raise Refusal(500, f"Container read failed: {error}") from error

    async def _original_setup(self, sandbox: Sandbox, timeout: float) -> None:
        """The set-up as one process of its own: its `cd` and its variables do not reach the session."""
        command = self.request.joined_setup
        if not command:
            return
        done = await sandbox.run_standalone(command, timeout=timeout)
        self.last_standalone_exit_code = ExecAnswer.of(done).exit_code
        if not done.ok:
            late = f" (ended after {timeout:g} s)" if done.timed_out else ""
            raise Refusal(400, f"Setup commands failed: {done.output}{late}")


def _as_typed(result: ExecResult) -> ExecResult:
    """The result as the original's interactive shell would have given it."""
    output = _LINE_NUMBER.sub("bash: ", result.output).rstrip()
    code = 0 if result.exited and result.exit_code is not None else result.exit_code
    return result.model_copy(update={"output": output, "exit_code": code})
