# SPDX-License-Identifier: Apache-2.0
"""MCP servers over HTTP for tests: strict about headers, with sessions where they are old, and bad at will."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

MODERN, LEGACY = "2026-07-28", "2025-11-25"
OBJECT = {"type": "object", "properties": {}}
REGION = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "more": {"type": "object", "properties": {"deep": {"type": "boolean", "x-mcp-header": "Deep"}}},
    },
}
WRONG = {"type": "object", "properties": {"x": {"type": "number", "x-mcp-header": "X"}}}
TOOLS = [
    {"name": "count", "inputSchema": OBJECT},
    {"name": "größe", "inputSchema": OBJECT},
    {"name": "mirrored", "inputSchema": REGION},
    {"name": "wrongly mirrored", "inputSchema": WRONG},
    {"name": "headers", "inputSchema": OBJECT},
    {"name": "basket", "inputSchema": OBJECT},
    {
        "name": "put",
        "description": "Put something into the basket.",
        "inputSchema": {
            "type": "object",
            "properties": {"basket_id": {"type": "string"}, "what": {"type": "string"}},
            "required": ["basket_id", "what"],
        },
    },
]  # fmt: skip


class HttpMcp:
    """One server. `modern=False`: sessions, and the reply of every call on a stream."""

    def __init__(self, *, modern: bool = True) -> None:
        self.modern = modern
        self.sessions: dict[str, Counter[str]] = {}
        self.baskets: dict[str, list[str]] = {}
        self.deleted: list[str] = []
        self.count: Counter[str] = Counter()
        self.dropped = asyncio.Event()
        """Set when a client went away in the middle of `hang`."""
        self.from_clients: list[dict[str, Any]] = []
        self._runner: web.AppRunner | None = None

    async def start(self) -> str:
        app = web.Application()
        app.router.add_route("*", "/mcp", self.handle)
        app.router.add_get("/page", _page)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            self.deleted.append(request.headers["Mcp-Session-Id"])
            return web.Response()
        body = json.loads(await request.read())
        return await (self._modern if self.modern else self._legacy)(request, body)

    async def _modern(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        params = body.get("params", {})
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if version != MODERN or request.headers.get("MCP-Protocol-Version") != MODERN:
            return _error(400, body, -32022, "version", {"supported": [MODERN]})
        if request.headers.get("Mcp-Method") != body["method"]:
            return _error(400, body, -32020, "method")
        if body["method"] == "tools/call" and decoded(request.headers.get("Mcp-Name", "")) != params["name"]:
            return _error(400, body, -32020, "name")
        if body["method"] == "server/discover":
            return _result(body, {"supportedVersions": [MODERN], "capabilities": {}})
        return await self._serve(request, body, self.count)

    async def _legacy(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body.get("method") == "initialize":
            session = uuid.uuid4().hex
            self.sessions[session] = Counter()
            response = _result(body, {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {}})
            response.headers["Mcp-Session-Id"] = session
            return response
        state = self.sessions.get(request.headers.get("Mcp-Session-Id", ""))
        if state is None:
            status = 404 if "Mcp-Session-Id" in request.headers else 400
            return _error(status, body, -32600, "Missing session")
        if "id" not in body or "method" not in body:
            self.from_clients.append(body)
            return web.Response(status=202)
        if request.headers.get("MCP-Protocol-Version") != LEGACY:
            return _error(400, body, -32600, "version")
        return await self._serve(request, body, state)

    async def _serve(self, request: web.Request, body: dict[str, Any], state: Counter[str]) -> web.StreamResponse:
        if body["method"] == "tools/list":
            return _result(body, {"tools": TOOLS, "ttlMs": 0})
        return await self._call(request, body, state)

    async def _call(self, request: web.Request, body: dict[str, Any], state: Counter[str]) -> web.StreamResponse:
        name, arguments = body["params"]["name"], body["params"]["arguments"]
        special: dict[str, Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]] = {
            "stream": self._stream, "cut": _cut, "endless": _endless, "large": _large, "hang": self._hang,
            "away": _away, "broken": _broken, "forget": self._forget, "kind": _kind,
        }  # fmt: skip
        if name in special:
            return await special[name](request, body)
        if name == "basket":
            handle = uuid.uuid4().hex
            self.baskets[handle] = []
            return _result(body, {"content": [], "structuredContent": {"basket_id": handle}})
        if name == "put":
            basket = self.baskets[arguments["basket_id"]]
            basket.append(arguments["what"])
            return _text(body, ", ".join(basket))
        if name == "headers":
            return _text(body, json.dumps(dict(request.headers)))
        if name == "mirrored":
            mirrored = {key: decoded(value) for key, value in request.headers.items() if key.startswith("Mcp-Param-")}
            return _text(body, json.dumps(mirrored, ensure_ascii=False))
        state["calls"] += 1
        return _text(body, str(state["calls"]))

    async def _stream(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = await _open_stream(request)
        await response.write(b": keep alive\r\n\r\nevent: message\r\nid: 7\r\ndata: \r\n\r\n")
        await _event(response, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        await _event(response, {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage"})
        reply = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"content": [{"type": "text", "text": "ä"}]}})
        data = reply.encode()
        await response.write(b"data: " + data[:20])
        await response.write(data[20:] + b"\r\n\r\n")
        return response

    async def _hang(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        try:
            await asyncio.sleep(3600)
        finally:
            self.dropped.set()
        return _text(body, "late")

    async def _forget(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        self.sessions.clear()
        return _error(404, body, -32001, "Session not found")


def decoded(value: str) -> str:
    if value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value


def _result(body: dict[str, Any], result: dict[str, Any]) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})


def _text(body: dict[str, Any], text: str) -> web.Response:
    return _result(body, {"content": [{"type": "text", "text": text}]})


def _error(status: int, body: dict[str, Any], code: int, message: str, data: Any = None) -> web.Response:
    error = {"code": code, "message": message, "data": data}
    return web.json_response({"jsonrpc": "2.0", "id": body.get("id"), "error": error}, status=status)


async def _open_stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


async def _event(response: web.StreamResponse, message: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(message).encode() + b"\n\n")


async def _cut(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    response = await _open_stream(request)
    await _event(response, {"jsonrpc": "2.0", "method": "notifications/progress"})
    return response


async def _endless(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    response = await _open_stream(request)
    while True:
        await response.write(b"data: " + b"x" * 60_000)


async def _large(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    return _text(body, "x" * 10_000_000)


async def _away(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "/elsewhere"})


async def _broken(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    return web.Response(status=503, text="come back later")


async def _kind(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    return web.Response(text="<html>hello</html>", content_type="text/html")


async def _page(request: web.Request) -> web.StreamResponse:
    return web.Response(status=405)
