# SPDX-License-Identifier: Apache-2.0
"""The backend `sos`: sandboxes on a server that speaks the SoS protocol, ours or the original.

A server of ours keeps to the whole contract, and this client hands it over as it is. The original knows less, and what
it lacks is made up for by `original.py`. Which of the two answers is seen by the answer to the first request.

Covered: whatever isolation the server gives; with `reward-kit sandbox serve`, that of its backend. Every request has a
deadline. A server that refuses, hangs, breaks off or has forgotten the sandbox is a retryable `SandboxError`; a setup
that fails is one that is not retryable. What a killed client leaves behind ends with the server's reaper.
Not covered: the server is trusted, and the connection is not encrypted unless the address is https. The original server
isolates with plain containers: network open, root, no limits on memory or processes, and exit codes that a command can
forge by printing the server's prompt.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from reward_kit.errors import AuthError, RewardKitError, SandboxError
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.models import ExecResult
from reward_kit.redaction import blot, remember
from reward_kit.sandbox.contract import Probe, Sandbox, SandboxSpec
from reward_kit.sandbox.files_by_shell import check_file, file_name, to_read, to_write
from reward_kit.sandbox.sos.protocol import (
    DEFAULT_IMAGE,
    DEFAULT_PORT,
    FAILED_TO_PULL,
    SETUP_FAILED,
    TOKEN_VARIABLE,
    CreateAnswer,
    ExecAnswer,
)
from reward_kit.utils.closing import ClosedAfterwards

if TYPE_CHECKING:
    from reward_kit.config_models import SandboxConfig
    from reward_kit.http.exchange import HttpSession

__all__ = ["SosBackend", "SosConnection", "SosSandbox", "make_backend"]

_CALL_SECONDS = 30.0
"""For requests that the server answers at once."""
_GRACE_SECONDS = 15.0
"""How much later than a command's own limit its answer may come."""
_READ_BYTES = 384 << 10
_WRITE_BYTES = 48 << 10  # a command is one argument of a process, and Linux gives that 128 KiB


class SosSandbox(ClosedAfterwards):
    """One sandbox on a server that keeps to the contract."""

    def __init__(
        self, connection: SosConnection, key: str, spec: SandboxSpec, closed: Callable[[SosSandbox], None]
    ) -> None:
        self._connection = connection
        self._path = f"/sandboxes/{key}"
        self._limits = spec.limits
        self._workdir = spec.workdir
        self._tell_closed = closed
        self._closed = False

    async def run(self, command: str, *, timeout: float | None = None, stdin: bytes | None = None) -> ExecResult:
        """Run in the persistent shell."""
        return await self._execute(command, timeout, stdin, standalone=False)

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run as a process of its own, in the directory where the shell is."""
        return await self._execute(command, timeout, stdin, standalone=True)

    async def mark(self) -> None:
        """What is there now is what the task is about."""
        await self._exec_call({"command": "", "standalone": True, "mark": True}, _CALL_SECONDS)

    async def check(self, command: str) -> ExecResult:
        """Run standalone there, with what a check may trust."""
        body = {"command": command, "standalone": True, "check": True, "timeout": self._limits.timeout}
        return await self._exec_call(body, self._limits.timeout + _GRACE_SECONDS)

    async def read(self, path: str) -> bytes:
        """The content of a file, fetched in pieces that no output limit cuts; an OSError where there is none."""
        size = max(3, min(_READ_BYTES, self._limits.output_bytes // 2))
        name, content = file_name(path, self._workdir), bytearray()
        while True:
            fetch = f"tail -c +{len(content) + 1} -- {name} | head -c {size} | base64 -w0"
            done = await self.run_standalone(f"{to_read(name)}; {fetch}")
            check_file(path, done)
            content += base64.b64decode(done.stdout)
            if len(content) % size or not done.stdout:
                return bytes(content)

    async def write(self, path: str, content: bytes) -> None:
        """Write a file, and the directories above it, in pieces that fit a command."""
        name = file_name(path, self._workdir)
        check_file(path, await self.run_standalone(to_write(name)))
        for start in range(0, len(content), _WRITE_BYTES):
            piece = base64.b64encode(content[start : start + _WRITE_BYTES]).decode()
            check_file(path, await self.run_standalone(f"printf %s {piece} | base64 -d >> {name}"))

    async def close(self) -> None:
        """Stop it on the server. A server that does not answer has a reaper, so that is no error."""
        if not self._closed:
            self._closed = True
            self._tell_closed(self)
            await self._connection.quietly(f"{self._path}/stop", {"remove": True}, deadline=_CALL_SECONDS)

    async def _execute(
        self, command: str, timeout: float | None, stdin: bytes | None, *, standalone: bool
    ) -> ExecResult:
        allowed = self._limits.timeout if timeout is None else timeout
        body: dict[str, object] = {"command": command, "standalone": standalone, "timeout": allowed}
        if stdin is not None:
            body["stdin"] = base64.b64encode(stdin).decode()
        return await self._exec_call(body, allowed + _GRACE_SECONDS)

    async def _exec_call(self, body: dict[str, object], deadline: float) -> ExecResult:
        if self._closed:
            raise SandboxError("this sandbox is closed; open another", retryable=False)
        began = time.monotonic()
        answer = await self._connection.post(f"{self._path}/exec", body, ExecAnswer, deadline=deadline)
        return answer.result(time.monotonic() - began)


def make_backend(config: SandboxConfig) -> SosBackend:
    """The backend as a run's settings want it."""
    return SosBackend(config.sos_url, image=config.image or "")


class SosBackend:
    """Sandboxes on the server at `base_url`.

    `token` defaults to the environment's REWARD_KIT_SANDBOX_TOKEN. `image` is used where a spec names none; empty
    leaves it to the server, or is `DEFAULT_IMAGE` for the original, which has no default. `start_timeout`: seconds an
    opening may take, the wait for a turn on a busy server included.
    """

    name = "sos"

    def __init__(
        self,
        base_url: str = f"http://127.0.0.1:{DEFAULT_PORT}",
        *,
        image: str = "",
        token: str | None = None,
        start_timeout: float = 300.0,
    ) -> None:
        self._connection = SosConnection(base_url, token or os.environ.get(TOKEN_VARIABLE) or None)
        self._image = image
        self._start_timeout = start_timeout
        self._open: set[SosSandbox] = set()
        self._cleaning: set[asyncio.Task[None]] = set()

    async def probe(self) -> Probe:
        """Open a sandbox there, run a command in it, close it."""
        try:
            async with await self.open(SandboxSpec()) as sandbox:
                answer = await sandbox.run("echo here")
        except RewardKitError as error:
            return Probe(False, str(error), "Start one with: reward-kit sandbox serve")
        works = answer.ok and answer.output.strip() == "here"
        return Probe(works, f"{self._connection.base_url} answers" if works else f"it answered {answer.output!r}")

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """A fresh sandbox there, with its setup done."""
        from reward_kit.sandbox.sos.original import OriginalSosSandbox

        image = spec.image or self._image
        terms = {**_terms(spec), "own_image": not image}
        body = {"image": image or DEFAULT_IMAGE, "setup_commands": [], "contract": terms}
        created = await self._connection.post("/sandboxes", body, CreateAnswer, deadline=_CALL_SECONDS)
        kind = SosSandbox if created.contract else OriginalSosSandbox
        sandbox = kind(self._connection, created.id, spec, self._open.discard)
        self._open.add(sandbox)
        try:
            await self._connection.request("POST", f"/sandboxes/{created.id}/start", deadline=self._start_timeout)
            if isinstance(sandbox, OriginalSosSandbox):
                await sandbox.prepare(spec)
        except BaseException:
            self._clean(sandbox.close())
            raise
        return sandbox

    async def close(self) -> None:
        """Stop every sandbox still open there, and close the connections."""
        await asyncio.gather(*(sandbox.close() for sandbox in list(self._open)), *self._cleaning)
        await self._connection.close()

    def _clean(self, closing: Coroutine[Any, Any, None]) -> None:
        """Close in the background: whoever is being cancelled cannot wait, and whoever failed need not."""
        task = asyncio.create_task(closing)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)


def _terms(spec: SandboxSpec) -> dict[str, object]:
    return {
        "setup": list(spec.setup),
        "setup_join": spec.setup_join,
        "files": {name: base64.b64encode(content).decode() for name, content in spec.files.items()},
        "environment": dict(spec.environment),
        "workdir": spec.workdir,
        "limits": vars(spec.limits),
        "network": spec.network,
    }


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# A deadline on every one, and every way to fail as an error of ours.

_log = logging.getLogger(__name__)
_A = TypeVar("_A", bound=BaseModel)
_SHOWN = 2000


class SosConnection:
    """One server, spoken to over kept-alive connections."""

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base_url = base_url.rstrip("/")
        remember(token)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._session: HttpSession | None = None

    async def post(self, path: str, body: object, answer: type[_A], *, deadline: float) -> _A:
        """What the server answers to `body`; anything but a 200 with that shape is an error."""
        content = await self.request("POST", path, body, deadline=deadline)
        try:
            return answer.model_validate(orjson.loads(content))
        except (orjson.JSONDecodeError, ValidationError):
            raise SandboxError(
                f"{self.base_url}{path} answered {content[:200]!r}, which no SoS server says; check the address"
            ) from None

    async def request(self, method: str, path: str, body: object = None, *, deadline: float) -> bytes:
        """The body of the 200 that comes within `deadline` seconds."""
        place = f"the sandbox server {self.base_url}"
        data = None if body is None else orjson.dumps(body)
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            reply = await self._opened().request(
                method, f"{self.base_url}{path}", data, headers, seconds=deadline
            )  # fmt: skip
        except HttpFault as fault:
            raise _no_answer(place, f"{method} {path}", deadline, fault) from fault
        if reply.status == 200:  # noqa: PLR2004
            return reply.data
        if moved := moved_to(reply.status, reply.headers):
            raise SandboxError(f"{place} answered {reply.status}: {moved}", retryable=False)
        raise _failure(place, f"{method} {path}", reply.status, blot(reply.data.decode("utf-8", "replace"))[:_SHOWN])

    async def quietly(self, path: str, body: object, *, deadline: float) -> None:
        """Post something whose failure changes nothing for the caller: the server's own reaper mends it."""
        try:
            await self.request("POST", path, body, deadline=deadline)
        except (SandboxError, AuthError) as error:
            _log.warning("%s", error)

    async def close(self) -> None:
        """Close the connections. The next request would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> HttpSession:
        if self._session is None:
            from reward_kit.http.exchange import HttpSession

            self._session = HttpSession()
        return self._session


def _no_answer(place: str, what: str, deadline: float, fault: HttpFault) -> SandboxError:
    if fault.kind == "late":
        return SandboxError(f"{place} did not answer {what} within {deadline:g} s; check that it works, and try again")
    if fault.kind == "unreached":
        return SandboxError(
            f"cannot reach {place}: {fault}; start one with `reward-kit sandbox serve`, or name the right address with "
            "`sandbox.sos_url`"
        )
    if fault.kind == "too_large":
        return SandboxError(f"{place}: {fault}; check the address", retryable=False)
    return SandboxError(f"{place} broke off {what}: {fault}; check that it works, and try again")


def _failure(place: str, what: str, status: int, text: str) -> SandboxError | AuthError:
    if status == 401:  # noqa: PLR2004
        return AuthError(f"{place} refuses the token; set {TOKEN_VARIABLE} to the one it printed at its start")
    if status == 400 and text.startswith(SETUP_FAILED):  # noqa: PLR2004
        return SandboxError(f"{text.rstrip()}; correct the setup commands of this task", retryable=False)
    if status == 400 and text.startswith(FAILED_TO_PULL):  # noqa: PLR2004
        return SandboxError(f"{place}: {text}; name an image it has with `sandbox.image`", retryable=False)
    if status == 400 and what.endswith("/start"):  # noqa: PLR2004 - a server of ours says what its backend said
        return SandboxError(text, retryable=False)
    final = status in (400, 413, 415, 422)
    advice = "check what is asked of it" if final else "check that it works, and try again"
    return SandboxError(f"{place} answered {status} to {what}: {text}; {advice}", retryable=not final)
