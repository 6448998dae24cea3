# SPDX-License-Identifier: Apache-2.0
"""All sandboxes of an SoS server: who may start, how many at a time, and what becomes of those nobody stops."""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import time
import uuid
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from reward_kit.errors import SandboxError
from reward_kit.models import ExecResult
from reward_kit.sandbox.contract import Limits, Sandbox, SandboxBackend, SandboxSpec, check_in, mark_in
from reward_kit.sandbox.sos.protocol import FAILED_TO_PULL, ContractTerms, CreateBody, ExecAnswer, ExecBody
from reward_kit.sandbox_backends import row_of

__all__ = ["HostOptions", "HostedSandbox", "Refusal", "SandboxHost", "TrajectoryStep"]

_log = logging.getLogger(__name__)
_REAPER_SECONDS = 10.0


@dataclass(frozen=True)
class HostOptions:
    """What the server allows its clients: how many sandboxes, for how long, within which limits."""

    max_sandboxes: int = 10
    """Open at a time; whoever wants another waits for its turn."""
    lifetime: float = 600.0
    """Seconds after which a sandbox is removed, whatever its state."""
    command_timeout: float = 30.0
    """Seconds a command may take when the client does not say."""
    setup_timeout: float = 120.0
    """Seconds the setup of an original client may take."""
    abandoned_after: float = 30.0
    """Seconds after which a sandbox is removed whose client broke off in mid-command and did not come back."""
    queue_timeout: float = 300.0
    """Seconds a start may wait for its turn before it is told to come again (503)."""
    limits: Limits = field(default_factory=lambda: Limits(timeout=600.0, memory_mb=2048, processes=512))
    """The most a client may ask for; what it asks beyond is cut to these."""
    network: bool = False
    """Whether a client may ask for the network."""
    images: Mapping[str, str] = field(default_factory=dict)
    """What an image's name stands for: a root filesystem or an image of the backend, empty for its default. The name
    `*` stands for every other name. A container backend takes names that are not here as they are."""


class SandboxHost:
    """Opens, keeps and ends sandboxes of one backend for clients it does not know."""

    def __init__(self, backend: SandboxBackend, options: HostOptions | None = None) -> None:
        self._backend = backend
        self.options = options or HostOptions()
        self._sandboxes: dict[str, HostedSandbox] = {}
        self._free = asyncio.Semaphore(self.options.max_sandboxes)
        self._reaper: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    # ── what clients ask ─────────────────────────────────────────────────────────────────────────────────────────

    def create(self, body: CreateBody) -> HostedSandbox:
        """Write down what is wanted. Nothing is opened yet."""
        if body.contract is not None and body.contract.network and not self.options.network:
            raise Refusal(400, "This server gives no network. Ask its operator to start it with --allow-network.")
        hosted = HostedSandbox(body)
        self._sandboxes[hosted.id] = hosted
        return hosted

    def information(self) -> list[dict[str, object]]:
        """What is known of each open sandbox, oldest first, as JSON objects."""
        return [hosted.information() for hosted in self._sandboxes.values()]

    def get(self, key: str, text: str = "Sandbox not found") -> HostedSandbox:
        """The sandbox called `key`, or a 404 that says `text`."""
        hosted = self._sandboxes.get(key)
        if hosted is None:
            raise Refusal(404, text)
        return hosted

    async def start(self, key: str) -> None:
        """Open it and run its setup, when its turn has come."""
        hosted = self.get(key)
        if hosted.status != "created" or hosted.opening is not None:
            raise Refusal(400, "Sandbox already started")
        opening = hosted.opening = asyncio.create_task(self._open(hosted))
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:  # the client is gone, and nobody else knows of this sandbox
            self._end_soon(hosted)
            raise
        if opening.cancelled():
            raise Refusal(400, "Sandbox not started")  # stopped while it was starting
        opening.result()

    async def execute(self, key: str, body: ExecBody) -> ExecAnswer:
        """Run a command in it. A client that leaves before the answer ends the command."""
        hosted = self.get(key)
        hosted.abandoned_at = None
        try:
            return await hosted.execute(body, self._timeout(hosted, body))
        except asyncio.CancelledError:
            hosted.abandoned_at = time.monotonic()
            raise

    async def stop(self, key: str, *, remove: bool) -> None:
        """End it, even in the middle of a command; with `remove`, forget it too."""
        missing = f"Sandbox {key} not found"
        hosted = self.get(key, missing)
        if remove:
            del self._sandboxes[key]
        never_started = hosted.status == "created" and hosted.opening is None
        if never_started or hosted.stopped_by_request:
            raise Refusal(400, "Sandbox not started")
        hosted.stopped_by_request = True
        self._end_soon(hosted)
        await hosted.ended.wait()

    # ── the host's own life ──────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start removing what is too old."""
        self._reaper = asyncio.create_task(self._reap())

    async def close(self) -> None:
        """End every sandbox, and the backend with them."""
        if self._reaper is not None:
            self._reaper.cancel()
            with suppress(asyncio.CancelledError):
                await self._reaper
        for hosted in self._sandboxes.values():
            self._end_soon(hosted)
        self._sandboxes.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._backend.close()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(_REAPER_SECONDS, self.options.lifetime / 4, self.options.abandoned_after / 2))
            for hosted in [one for one in self._sandboxes.values() if self._is_over(one)]:
                del self._sandboxes[hosted.id]
                self._end_soon(hosted)

    def _is_over(self, hosted: HostedSandbox) -> bool:
        abandoned = hosted.abandoned_at
        left = abandoned is not None and time.monotonic() - abandoned > self.options.abandoned_after
        return left or hosted.age() > self.options.lifetime

    def _end_soon(self, hosted: HostedSandbox) -> None:
        """End it in a task of its own, so that nobody waits for a slow close."""
        task = asyncio.create_task(self._end(hosted))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, hosted: HostedSandbox) -> None:
        try:
            await hosted.end()
        except (SandboxError, TimeoutError) as error:
            _log.warning("the sandbox %s could not be closed: %s", hosted.id, error)
        finally:
            if hosted.has_turn:
                hosted.has_turn = False
                self._free.release()
            hosted.ended.set()

    async def _open(self, hosted: HostedSandbox) -> None:
        """The task of a start. Whatever goes wrong in it, `_end` closes what is open and gives the turn back."""
        try:
            spec = self._spec(hosted.request)
            await self._turn(hosted)
            await hosted.adopt(await self._backend.open(spec), self.options.setup_timeout)
        except SandboxError as error:
            self._end_soon(hosted)
            raise _refused(error) from error
        except BaseException:
            self._end_soon(hosted)
            raise

    async def _turn(self, hosted: HostedSandbox) -> None:
        try:
            async with asyncio.timeout(self.options.queue_timeout):
                await self._free.acquire()
        except TimeoutError:
            text = f"All {self.options.max_sandboxes} sandboxes are in use. Stop one, or try again later."
            raise Refusal(503, text) from None
        hosted.has_turn = True

    def _timeout(self, hosted: HostedSandbox, body: ExecBody) -> float:
        default = self.options.command_timeout if hosted.terms is None else hosted.terms.limits.timeout
        return min(body.timeout or default, self.options.limits.timeout)

    def _spec(self, body: CreateBody) -> SandboxSpec:
        image = self._image(body.named_image)
        if body.contract is None:
            return SandboxSpec(image=image)
        return body.contract.spec(image, _within(body.contract.limits, self.options.limits))

    def _image(self, name: str) -> str | None:
        images = self.options.images
        if not name:
            return images.get("", "") or None
        if name in images or "*" in images:
            return images.get(name, images.get("*", "")) or None
        if row_of(self._backend.name).runs_images:
            return name
        known = ", ".join(sorted(images)) or "none"
        raise Refusal(
            400,
            f"{FAILED_TO_PULL}: {name!r} is not served here (served: {known}); start the server with --image NAME=ROOT",
        )


def _refused(error: SandboxError) -> Refusal:
    """What cannot be mended by trying again is the client's to mend; the rest is ours."""
    if error.retryable:
        return Refusal(500, f"Failed to start container: {error}. Exit code: None, Logs: ")
    return Refusal(400, str(error))


def _within(wanted: Limits, most: Limits) -> Limits:
    names = [each.name for each in fields(Limits)]
    return Limits(**{name: min(vars(wanted)[name], vars(most)[name]) for name in names})


# ── one sandbox of the server ─────────────────────────────────────────────────────────────────────────────────────────
#
#     created ──start──▶ started ──`exit`──▶ exited ──stop──▶ stopped
#
# Its state, its trajectory, and the original server's habits. No lock is held while a command runs, so that `end` works
# at any moment. Only the shell is taken by turns.

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
class TrajectoryStep:
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
    trajectory: list[TrajectoryStep] = field(default_factory=list)
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
            "image": self.request.named_image,
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
            step = TrajectoryStep(body.command, time.monotonic())
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
        if body.mark:
            await mark_in(sandbox)
            return ExecResult(exit_code=0)
        if body.check:
            return await self._guarded(check_in(sandbox, body.command))
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
        """The setup as one process of its own: its `cd` and its variables do not reach the session."""
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
