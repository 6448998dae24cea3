# SPDX-License-Identifier: Apache-2.0
"""An MCP server behind an address, spoken to by streamable HTTP: a request is a POST, its reply JSON or a stream.

One `HttpServer` per address holds the connections, which rollouts share. What is a rollout's own is its `HttpChannel`:
its headers, and with servers of 2025-11-25 and older its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from reward_kit.agent.mcp.contract import Bounds, McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.inbox import Inbox
from reward_kit.agent.mcp.protocol import RpcError, encode, error_of, parse
from reward_kit.errors import AuthError
from reward_kit.http.exchange import HttpSession, Response
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.redaction import blot, remember_settings

__all__ = ["HttpChannel", "HttpServer"]

_SESSION = "Mcp-Session-Id"
_ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_CONNECTIONS = 256
"""Requests to one server at a time; more wait."""
_GOODBYE = 5.0
_SHOWN = 300
_REDIRECT, _REFUSED, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _BROKEN = (
    300, 400, 401, 403, 404, 500,
)  # fmt: skip


class HttpServer:
    """The connections to one address."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, bounds: Bounds | None = None) -> None:
        """`headers` go with every request: a key, for instance. Nothing is opened yet."""
        self.url = url
        self.bounds = bounds or Bounds()
        self._headers = dict(headers or {})
        self._session: HttpSession | None = None

    def channel(self, headers: Mapping[str, str] | None = None) -> HttpChannel:
        """A connection of its own, as far as the server can tell: with headers of its own, and a session of its own."""
        return HttpChannel(self, headers or {})

    def session(self) -> HttpSession:
        """The connections, opened when they are first needed."""
        if self._session is None:
            self._session = HttpSession(headers={**self._headers, **_ACCEPTED}, connections=_CONNECTIONS)
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class HttpChannel:
    """What one rollout has of a server."""

    def __init__(self, server: HttpServer, headers: Mapping[str, str]) -> None:
        """Send `headers` with every request."""
        self.tools_changed = False
        self._server = server
        self._headers = dict(headers)
        remember_settings(self._headers)
        self._session_id: str | None = None
        self._answers: set[asyncio.Task[None]] = set()

    @property
    def alive(self) -> bool:
        """Always: whether the server can be reached is known when a request has been sent."""
        return True

    @property
    def session_id(self) -> str | None:
        """The session that the server keeps for this channel; None where it keeps none."""
        return self._session_id

    async def exchange(
        self, message: Mapping[str, Any], *, headers: Mapping[str, str], timeout: float | None
    ) -> dict[str, Any]:
        """Send a request and read its reply. Giving up closes the stream, which is how a server is told to stop."""
        try:
            async with asyncio.timeout(timeout), self._post(message, headers) as response:
                await self._check(response)
                if response.headers.get(_SESSION) and message["method"] == "initialize":
                    self._session_id = response.headers[_SESSION]
                return await self._reply(response, message["id"])
        except (HttpFault, ValueError) as error:
            if isinstance(error, HttpFault) and error.kind == "too_large":
                raise ReplyTooLarge(self._server.bounds.reply_bytes) from error
            raise McpServerFailure(
                f"The MCP server at {self._server.url!r} cannot be reached, or ended the connection: {error}."
            ) from error

    async def notify(self, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> None:
        """Send what has no reply."""
        try:
            async with asyncio.timeout(_GOODBYE), self._post(message, headers) as response:
                await self._check(response)
        except (HttpFault, TimeoutError) as error:
            raise McpServerFailure(f"The MCP server at {self._server.url!r} cannot be reached: {error}.") from error

    async def close(self) -> None:
        """End the session, where there is one. The connections stay: others use them."""
        for task in self._answers:
            task.cancel()
        session, self._session_id = self._session_id, None
        if session is not None:
            with suppress(HttpFault):
                headers = {**self._headers, _SESSION: session}
                async with self._server.session().open("DELETE", self._server.url, None, headers, seconds=_GOODBYE):
                    pass

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _post(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> AbstractAsyncContextManager[Response]:
        own = {**self._headers, **headers}
        if self._session_id is not None:
            own[_SESSION] = self._session_id
        return self._server.session().open("POST", self._server.url, encode(message), own)

    async def _check(self, response: Response) -> None:
        """Pass a good status on. A refusal that says why in JSON-RPC is an `RpcError` of its own code."""
        status = response.status
        if status < _REDIRECT:
            return
        body = blot((await _bounded(response, 1 << 16)).decode(errors="replace"))
        message = parse(body.encode())
        said = body[:_SHOWN].strip()
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            raise AuthError(
                f"The MCP server at {self._server.url!r} refuses the credentials (HTTP {status}). Give it a key "
                "that it takes: `agent.params.headers` or `agent.params.key_env`."
            )
        if _REFUSED <= status < _BROKEN and message is not None and (error := error_of(message)):
            if status == _NOT_FOUND and self._session_id is not None:
                raise McpServerFailure(f"The MCP server at {self._server.url!r} has forgotten the session: {error}.")
            raise error
        if _REFUSED <= status < _BROKEN and self._session_id is None:
            raise RpcError(status, f"HTTP {status}: {said or 'no explanation'}")
        said = moved_to(status, response.headers) or said
        raise McpServerFailure(f"The MCP server at {self._server.url!r} answered with HTTP {status}: {said}")

    async def _reply(self, response: Response, request: int) -> dict[str, Any]:
        inbox = Inbox(self._server.bounds, self._answer)
        reply = inbox.expect(request)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        try:
            if kind == "text/event-stream":
                async for data in _events(response, self._server.bounds.reply_bytes):
                    inbox.take(data)
                    if reply.done():
                        break
            elif kind == "application/json":
                inbox.take(await _bounded(response, self._server.bounds.reply_bytes))
            else:
                raise McpServerFailure(
                    f"The address {self._server.url!r} answers with {kind or 'nothing'!r}, which is not an answer of "
                    "an MCP server. Check the path: it is often /mcp."
                )
            self.tools_changed = self.tools_changed or inbox.tools_changed
            if reply.done():
                return reply.result()
        finally:
            reply.cancel()
        raise McpServerFailure(f"The MCP server at {self._server.url!r} ended its answer before the reply was in it.")

    def _answer(self, message: dict[str, Any]) -> None:
        """Answer a request that an old server makes in the middle of ours."""

        async def send() -> None:
            with suppress(McpServerFailure, RpcError, AuthError):
                await self.notify(message, headers={})

        task = asyncio.create_task(send())
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)


async def _bounded(response: Response, most: int) -> bytes:
    """The whole body; `ReplyTooLarge` where it has more than `most` bytes."""
    body = bytearray()
    async for chunk in response.pieces():
        body += chunk
        if len(body) > most:
            raise ReplyTooLarge(most)
    return bytes(body)


async def _events(response: Response, most: int) -> AsyncIterator[bytes]:
    """The data of each event of a stream. Comments, names and ids of events are passed over."""
    buffer = bytearray()
    data: list[bytes] = []
    size = 0
    async for chunk in response.pieces():
        buffer += chunk
        lines = []
        if b"\n" in chunk:  # else a line that comes in crumbs would be looked through with each of them
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
        for line in (line.removesuffix(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
                size += len(line)
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
        if size + len(buffer) > most:
            raise ReplyTooLarge(most)
    if data:
        yield b"\n".join(data)
