# SPDX-License-Identifier: Apache-2.0
"""An MCP server of the tools of any environment of ours, for other people's agents. Both eras, over pipes or HTTP.

    python -m reward_kit.agent.mcp.server game.py:Game --row '{"seed": 7}'              one world, over stdin and stdout
    python -m reward_kit.agent.mcp.server game.py:Game --http 8000                      many worlds, at /mcp

A process has one world. Over HTTP there are no sessions, so worlds are named: `open_world` makes one and returns its
`world_id`, every other tool takes that, `close_world` ends it. What rewards may read (`world_facts`) is only served
when it is asked for with `--facts`: a model that sees it could learn what it is judged by.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from reward_kit.agent.calls import ToolRunner
from reward_kit.agent.environment import Environment, World, finished, opened
from reward_kit.agent.from_settings import load_environment
from reward_kit.agent.mcp.protocol import (
    DONE_KEY,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    METHOD_NOT_FOUND,
    MODERN,
    PARSE_ERROR,
    REWARD_KEY,
    SERVER_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    client_info,
    decoded_header,
    encode,
    parse,
)
from reward_kit.agent.open_world import as_answer
from reward_kit.agent.tools import Tool
from reward_kit.config_models import AgentConfig
from reward_kit.datasets.interpret import RowReader
from reward_kit.errors import ItemError, RewardKitError, message_of
from reward_kit.http.server import serve_until_ended
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["MCP_PATHS", "ToolServer", "is_foreign", "serve_http", "serve_stdio", "tell_address"]

_HANDLE: Final = "world_id"
_MOST_WORLDS = 10_000
_LONGEST_LINE = 8 * 2**20
MCP_PATHS: Final = ("/mcp", "/mcp/")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


_rows = RowReader()
_rows.world_opens = True


class _Open:
    """A world that is open, and whose tools run one after the other."""

    def __init__(self, world: World, begun: str) -> None:
        self.world = world
        self.begun = begun
        """What the world shows before the first turn."""
        self.lock = asyncio.Lock()


class ToolServer:
    """Answers the messages of clients with the tools of an environment's worlds, whatever carries the messages."""

    def __init__(
        self,
        environment: Environment,
        *,
        row: Mapping[str, Any] | None = None,
        handles: bool = False,
        facts: bool = False,
    ) -> None:
        """`row` has the columns of the sample that worlds are opened for; with `handles`, clients open them."""
        self._environment = environment
        self._row = dict(row or {})
        self._handles = handles
        self._facts = facts
        self._first: _Open | None = None
        self._opening = asyncio.Lock()
        self._worlds: dict[str, _Open] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}

    async def reply_to(self, data: bytes) -> dict[str, Any] | None:
        """The reply to one message; None where it asks for none."""
        message = parse(data)
        if message is None:
            return _failed(None, RpcError(PARSE_ERROR, "This is not a JSON-RPC message."))
        request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if not isinstance(method, str) or not isinstance(params, dict) or not isinstance(request, int | str | None):
            return _failed(None, RpcError(INVALID_REQUEST, "A request has an id, a method, and params as an object."))
        if request is None:
            self._noticed(method, params)
            return None
        return await self._reply(request, asyncio.ensure_future(self._result(method, params)))

    async def _reply(self, request: int | str, task: asyncio.Task[dict[str, Any]]) -> dict[str, Any] | None:
        if not self._handles:  # there is one client, whose ids are its own
            self._running[request] = task
        try:
            return {"jsonrpc": "2.0", "id": request, "result": await task}
        except RpcError as error:
            return _failed(request, error)
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            return None  # the client gave it up, and wants no reply
        except RewardKitError as error:
            return _failed(request, RpcError(INTERNAL_ERROR, f"The world failed: {message_of(error)}"))
        finally:
            self._running.pop(request, None)

    async def begin(self) -> World:
        """Open the world of a server that has one, now."""
        return (await self._first_world()).world

    async def close(self) -> None:
        """Close every world."""
        opened = [*self._worlds.values(), *([self._first] if self._first else [])]
        self._worlds, self._first = {}, None
        for each in opened:
            await finished(each.world.close())
        await finished(self._environment.close())

    def _noticed(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled" and (task := self._running.get(params.get("requestId"))):
            task.cancel()

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            asked = params.get("protocolVersion")
            version = asked if asked in LEGACY else LEGACY[0]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": client_info()}
        if method == "ping":
            return {}
        modern = _check_version(params)
        found: dict[str, Any]
        if method == "server/discover":
            found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
        elif method == "tools/list":
            found = {"tools": await self._listed(), "ttlMs": 0, "cacheScope": "private"}
        elif method == "tools/call":
            found = await self._called(params)
        else:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method[:100]!r}.")
        if not modern:
            return found
        return {"resultType": "complete", **found, "_meta": {SERVER_KEY: client_info(), **found.get("_meta", {})}}

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listed(self) -> list[dict[str, Any]]:
        first = await self._first_world()
        tools = [_described(tool, handle=self._handles) for tool in first.world.tools]
        return [*tools, *self._tools_about_worlds()]

    def _tools_about_worlds(self) -> list[dict[str, Any]]:
        handle = {_HANDLE: {"type": "string", "description": "What open_world returned."}} if self._handles else {}
        by_handle = {"type": "object", "properties": handle, "required": list(handle)}
        row = {"type": "object", "properties": {"row": {"type": "object", "description": "Columns of the task."}}}
        listed = []
        if self._handles:
            opening = (
                f"Open a world of your own. Its {_HANDLE} goes into every other call. It is there until it is closed."
            )
            listed.append({"name": "open_world", "description": opening, "inputSchema": row})
            closing = "Close a world that is not needed any more."
            listed.append({"name": "close_world", "description": closing, "inputSchema": by_handle})
        if self._facts:
            facts = "What rewards may read of the world. Not for models."
            listed.append({"name": "world_facts", "description": facts, "inputSchema": by_handle})
        return listed

    async def _called(self, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "A call has a name, and arguments that are an object.")
        if name == "open_world" and self._handles:
            return await self._opened(arguments)
        opened = await self._world_of(arguments)
        if name == "close_world" and self._handles:
            del self._worlds[arguments[_HANDLE]]
            await finished(opened.world.close())
            return _text("closed")
        if name == "world_facts" and self._facts:
            facts = await finished(opened.world.facts())
            return {**_text(json.dumps(facts)), "structuredContent": facts}
        return await self._tool_called(opened, name, {key: arguments[key] for key in arguments if key != _HANDLE})

    async def _opened(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if len(self._worlds) >= _MOST_WORLDS:
            raise RpcError(INTERNAL_ERROR, f"There are {_MOST_WORLDS:,} worlds already. Close some of them.")
        handle = uuid.uuid4().hex
        row = arguments.get("row")
        opened = self._worlds[handle] = await self._open(row if isinstance(row, dict) else {})
        told = {_HANDLE: handle, **({"observation": opened.begun} if opened.begun else {})}
        return {**_text(json.dumps(told)), "structuredContent": told}

    async def _world_of(self, arguments: Mapping[str, Any]) -> _Open:
        if not self._handles:
            return await self._first_world()
        opened = self._worlds.get(str(arguments.get(_HANDLE)))
        if opened is None:
            raise RpcError(INVALID_PARAMS, f"There is no world of that {_HANDLE}. Open one with open_world.")
        return opened

    async def _tool_called(self, opened: _Open, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tools = list(opened.world.tools)
        if name not in {tool.name for tool in tools}:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]}")
        function = FunctionCall(name=name, arguments=json.dumps(arguments))
        call = ChatCompletionMessageToolCall(id="1", type="function", function=function)
        async with opened.lock:
            runner = opened.world.runner = ToolRunner()
            acted = Message(role="assistant", content=None, tool_calls=[call])
            answer = as_answer(await finished(opened.world.answer(acted)))
        kind = runner.uses[0].error if runner.uses else None
        meta: dict[str, Any] = {DONE_KEY: True} if answer.done else {}
        if answer.reward is not None:
            meta[REWARD_KEY] = answer.reward
        result = _failed_call(answer.messages) if kind not in (None, "output_cut") else _content(answer.messages)
        return {**result, **({"_meta": meta} if meta else {})}

    # ── worlds ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _first_world(self) -> _Open:
        """The world of this process; with handles, one that only shows which tools there are."""
        async with self._opening:
            if self._first is None:
                self._first = await self._open({})
            return self._first

    async def _open(self, row: Mapping[str, Any]) -> _Open:
        try:
            sample = _rows.sample_as_it_is({"id": "served", **self._row, **row})
            world = await opened(self._environment, sample)
        except ItemError as error:
            raise RpcError(INTERNAL_ERROR, f"No world could be opened: {message_of(error)}") from error
        shown = as_answer(await finished(world.start())).messages
        return _Open(world, "\n".join(message.text for message in shown))


def _check_version(params: Mapping[str, Any]) -> bool:
    """Whether a request is modern. One that asks for a version that is not spoken is refused."""
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if version not in (None, MODERN, *LEGACY):
        data = {"supported": [MODERN, *LEGACY], "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return version == MODERN


def _described(tool: Tool, *, handle: bool) -> dict[str, Any]:
    schema = {"type": "object", **tool.parameters}
    if handle:
        schema["properties"] = {**schema.get("properties", {}), _HANDLE: {"type": "string"}}
        schema["required"] = [*schema.get("required", ()), _HANDLE]
    hints = {"annotations": {"readOnlyHint": True}} if tool.reads else {}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema, **hints}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _failed_call(told: Sequence[Message]) -> dict[str, Any]:
    """Why a tool failed, for the model."""
    first, *rest = told
    words = [json.loads(first.text)["error"]["message"], *(message.text for message in rest)]
    return {"content": [{"type": "text", "text": text} for text in words], "isError": True}


def _content(told: Sequence[Message]) -> dict[str, Any]:
    """What came back: the tool's output, and what else the world showed. Images stay images."""
    parts: list[dict[str, Any]] = []
    for message in told:
        whole = [{"type": "text", "text": message.content or ""}]
        parts += [_part(part) for part in (message.content if isinstance(message.content, list) else whole)]
    return {"content": parts}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    url = part.get("image_url", {}).get("url", "") if part.get("type") == "image_url" else ""
    kind, comma, data = url.partition(";base64,")
    if comma:
        return {"type": "image", "mimeType": kind.removeprefix("data:"), "data": data}
    return {"type": "text", "text": str(part.get("text", ""))}


def _failed(request: object, error: RpcError) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}
    return {"jsonrpc": "2.0", "id": request, "error": told}


# ── over pipes ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def serve_stdio(server: ToolServer, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer what comes in line by line, until there is no more. Calls may overtake each other."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
    tasks: set[asyncio.Task[None]] = set()

    async def answer(line: bytes) -> None:
        reply = await server.reply_to(line)
        if reply is not None:
            await asyncio.to_thread(_write, stdout, encode(reply) + b"\n")

    try:
        while line := await reader.readline():
            if line.strip():
                task = asyncio.create_task(answer(line))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
    except (BrokenPipeError, ValueError):  # ValueError: a line without end
        pass
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        transport.close()
        await server.close()


def _write(stdout: BinaryIO, data: bytes) -> None:
    stdout.write(data)
    stdout.flush()


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


def serve_http(server: ToolServer) -> web.Application:
    """An application that answers at /mcp. Whoever starts it decides where it listens."""
    from aiohttp import web  # a server over standard input, which each rollout may start, does without it

    async def post(request: web.Request) -> web.Response:
        if is_foreign(request.headers):
            return web.Response(status=403, text="This origin may not speak to this server.")
        body = await request.read()
        wrong = _header_problem(request.headers, parse(body))
        if wrong is not None:
            return _json(wrong, 400)
        reply = await server.reply_to(body)
        if reply is None:
            return web.Response(status=202)
        code = reply.get("error", {}).get("code")
        statuses = {METHOD_NOT_FOUND: 404, UNSUPPORTED_VERSION: 400, PARSE_ERROR: 400, INVALID_REQUEST: 400}
        return _json(reply, statuses.get(code, 200))

    async def close(_: web.Application) -> None:
        await server.close()

    app = web.Application(client_max_size=_LONGEST_LINE)
    for path in MCP_PATHS:
        app.router.add_post(path, post)
    app.on_cleanup.append(close)
    return app


def tell_address(address: str) -> None:
    """Say where a server answers; standard output may be for messages."""
    print(f"Serving MCP at {address}{MCP_PATHS[0]}", file=sys.stderr, flush=True)


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a page of another host asks, which a person's browser has opened."""
    origin = headers.get("Origin")
    return origin is not None and origin.partition("://")[2].rpartition(":")[0] not in _LOCAL


def _json(reply: Mapping[str, Any], status: int) -> web.Response:
    from aiohttp import web

    return web.Response(body=encode(reply), status=status, content_type="application/json")


def _header_problem(headers: Mapping[str, str], message: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a modern request's headers say must be what its body says."""
    params = (message or {}).get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if message is None or not isinstance(params, dict) or not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    expected = {"MCP-Protocol-Version": meta[VERSION_KEY], "Mcp-Method": message.get("method")}
    if message.get("method") == "tools/call":
        expected["Mcp-Name"] = params.get("name")
    for name, value in expected.items():
        if decoded_header(headers.get(name)) != value:
            told = f"Header mismatch: {name} is {headers.get(name)!r}, and the body says {value!r}"
            return _failed(message.get("id"), RpcError(HEADER_MISMATCH, told))
    return None


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the environment that the command line names."""
    summary = (__doc__ or "").split("\n\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(prog="python -m reward_kit.agent.mcp.server", description=summary)
    parser.add_argument("environment", nargs="?", help="as in `agent.environment`: game.py:Game, or module:Class")
    parser.add_argument("--tools", nargs="*", default=[], help="functions that are tools, as in `agent.tools`")
    parser.add_argument("--params", type=json.loads, default={}, help="as in `agent.params`, as JSON")
    parser.add_argument("--row", type=json.loads, default={}, help="the columns of the sample, as JSON")
    parser.add_argument("--facts", action="store_true", help="also serve what rewards may read")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve over HTTP, many worlds at a time")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; by default only on this machine")
    given = parser.parse_args(arguments)
    config = AgentConfig(environment=given.environment, tools=given.tools, params=given.params)
    try:
        environment = load_environment(config)
    except RewardKitError as error:
        parser.error(str(error))
    if given.http is not None:
        server = ToolServer(environment, row=given.row, handles=True, facts=given.facts)
        serve_until_ended(serve_http(server), given.host, given.http, tell_address)
        return
    # What a tool prints must not come between the messages: it goes to the error output.
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = ToolServer(environment, row=given.row, facts=given.facts)
    asyncio.run(serve_stdio(server, sys.stdin.buffer, stdout))


if __name__ == "__main__":
    main()
