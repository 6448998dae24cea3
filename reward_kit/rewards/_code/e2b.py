# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of E2B, a service that rents them out, by its own client (extra `e2b`, key in `E2B_API_KEY`)."""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from reward_kit.errors import AuthError, SandboxError, needs_extra
from reward_kit.models import ExecResult

__all__ = ["E2bPlace", "open_e2b"]

_HOME = "/home/user"
_LIFETIME_SECONDS = 300
_REQUEST_SECONDS = 30.0


class E2bPlace:
    """An open sandbox of E2B, as the code rewards use it."""

    def __init__(self, sandbox: Any, client: Any) -> None:
        """Of the client's module and one of its `AsyncSandbox`es."""
        self._sandbox = sandbox
        self._client = client

    async def write(self, path: str, content: bytes) -> None:
        """Write a file in the sandbox; `path` is relative to the home directory."""
        with _as_sandbox_error(self._client):
            await self._sandbox.files.write(f"{_HOME}/{path}", content)

    async def read(self, path: str) -> bytes:
        """The content of a file in the sandbox; `path` is relative to the home directory."""
        with _as_sandbox_error(self._client):
            return bytes(await self._sandbox.files.read(f"{_HOME}/{path}", format="bytes"))

    async def run_standalone(
        self, command: str, *, timeout: float | None = None, stdin: bytes | None = None
    ) -> ExecResult:
        """Run a command, with its input from a file."""
        source = "/dev/null"
        if stdin:
            source = f".input-{secrets.token_hex(8)}"
            await self.write(source, stdin)
        whole = f"bash -c {shlex.quote(command)} < {source}"
        try:
            with _as_sandbox_error(self._client):
                done = await self._sandbox.commands.run(whole, cwd=_HOME, timeout=timeout or _REQUEST_SECONDS)
        except _CommandFailed as failed:
            return failed.result
        return ExecResult(
            exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr, output=done.stdout + done.stderr
        )


class _CommandFailed(Exception):
    """The client raises for a command that fails; here it is a value."""

    def __init__(self, result: ExecResult) -> None:
        super().__init__()
        self.result = result


@contextlib.contextmanager
def _as_sandbox_error(client: Any) -> Any:
    """What goes wrong with the service is the sandbox's failure; a command that fails or takes too long is not."""
    try:
        yield
    except client.CommandExitException as error:
        output = error.stdout + error.stderr
        raise _CommandFailed(
            ExecResult(exit_code=error.exit_code, stdout=error.stdout, stderr=error.stderr, output=output)
        ) from None
    except client.TimeoutException:
        raise _CommandFailed(ExecResult(exit_code=None, timed_out=True)) from None
    except client.AuthenticationException as error:
        raise AuthError(f"E2B refuses the key: {error}. Set E2B_API_KEY to one of your account.") from error
    except client.SandboxException as error:
        raise SandboxError(f"E2B failed: {error}. Try again.") from error


@asynccontextmanager
async def open_e2b(api_key: str | None = None) -> AsyncIterator[E2bPlace]:
    """A fresh sandbox without network, ended when the block is left."""
    with needs_extra("Running code at E2B", "e2b"):
        import e2b
    options: dict[str, Any] = {"api_key": api_key} if api_key else {}
    try:
        with _as_sandbox_error(e2b):
            sandbox = await e2b.AsyncSandbox.create(timeout=_LIFETIME_SECONDS, allow_internet_access=False, **options)
    except _CommandFailed as failed:
        raise SandboxError("E2B did not start a sandbox in time. Try again.") from failed
    try:
        yield E2bPlace(sandbox, e2b)
    finally:
        with contextlib.suppress(e2b.SandboxException):
            await sandbox.kill()
