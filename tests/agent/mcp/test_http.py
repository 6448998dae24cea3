# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP: both eras, sessions, mirrored headers, and servers that break off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from reward_kit.agent.mcp.client import McpClient
from reward_kit.agent.mcp.contract import Bounds, McpServerFailure, ReplyTooLarge
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.mcp.protocol import LEGACY, MODERN
from tests.agent.mcp.http_server_of_ours import HttpMcp


class Here:
    """A server, and clients of it."""

    def __init__(self, *, modern: bool) -> None:
        self.mcp = HttpMcp(modern=modern)
        self.url = ""
        self._server: HttpServer | None = None
        self._clients: list[McpClient] = []

    @property
    def server(self) -> HttpServer:
        if self._server is None:
            self._server = HttpServer(self.url, bounds=Bounds(reply_bytes=1_000_000))
        return self._server

    async def client(self, **headers: str) -> McpClient:
        client = McpClient(self.server.channel(headers))
        self._clients.append(client)
        await client.connect(60)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        if self._server is not None:
            await self._server.close()
        await self.mcp.stop()


@pytest.fixture(params=["modern", "legacy"])
async def here(request: pytest.FixtureRequest) -> AsyncIterator[Here]:
    here = Here(modern=request.param == "modern")
    here.url = await here.mcp.start()
    yield here
    await here.close()


@pytest.fixture
async def modern() -> AsyncIterator[Here]:
    here = Here(modern=True)
    here.url = await here.mcp.start()
    yield here
    await here.close()


@pytest.fixture
async def legacy() -> AsyncIterator[Here]:
    here = Here(modern=False)
    here.url = await here.mcp.start()
    yield here
    await here.close()


async def test_each_era_is_found_out(here: Here) -> None:
    client = await here.client()
    assert client.version == (MODERN if here.mcp.modern else LEGACY[0])
    assert "größe" in {tool.name for tool in await client.list_tools(60)}
    assert (await client.call_tool("größe", {}, 60)).text == "1"


async def test_the_reply_may_come_on_a_stream_between_other_things(here: Here) -> None:
    assert (await (await here.client()).call_tool("stream", {}, 60)).text == "ä"


async def test_with_an_old_server_every_client_has_a_session_which_ends_with_it(legacy: Here) -> None:
    first, second = await legacy.client(), await legacy.client()
    assert [(await first.call_tool("count", {}, 60)).text for _ in range(2)] == ["1", "2"]
    assert (await second.call_tool("count", {}, 60)).text == "1"
    await first.close()
    assert len(legacy.mcp.deleted) == 1
    assert (await second.call_tool("count", {}, 60)).text == "2"


async def test_a_request_in_the_middle_of_ours_is_answered(legacy: Here) -> None:
    client = await legacy.client()
    await client.call_tool("stream", {}, 60)
    until = asyncio.get_running_loop().time() + 60
    while len(legacy.mcp.from_clients) < 2 and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.01)
    assert legacy.mcp.from_clients[-1]["error"]["code"] == -32601


async def test_a_session_that_is_forgotten_is_a_failure_of_the_world(legacy: Here) -> None:
    client = await legacy.client()
    with pytest.raises(McpServerFailure, match="forgotten the session"):
        await client.call_tool("forget", {}, 60)


async def test_parameters_are_mirrored_into_headers_and_wrong_marks_leave_a_tool_out(
    modern: Here, caplog: pytest.LogCaptureFixture
) -> None:
    client = await modern.client()
    assert "wrongly mirrored" not in {tool.name for tool in await client.list_tools(60)}
    assert "'wrongly mirrored' is left out" in caplog.text
    sent = await client.call_tool("mirrored", {"region": "Zürich\n", "more": {"deep": True}}, 60)
    assert json.loads(sent.text) == {"Mcp-Param-Region": "Zürich\n", "Mcp-Param-Deep": "true"}
    assert json.loads((await client.call_tool("mirrored", {"region": None}, 60)).text) == {}


async def test_headers_of_one_client_do_not_reach_another(modern: Here) -> None:
    one, other = await modern.client(**{"X-Rollout": "one"}), await modern.client()
    assert json.loads((await one.call_tool("headers", {}, 60)).text)["X-Rollout"] == "one"
    assert "X-Rollout" not in json.loads((await other.call_tool("headers", {}, 60)).text)


@pytest.mark.parametrize(
    ("name", "what"),
    [("cut", "before the reply"), ("broken", "503: come back later"), ("away", "307"), ("kind", "text/html")],
)
async def test_answers_that_are_none_are_failures(here: Here, name: str, what: str) -> None:
    client = await here.client()
    with pytest.raises(McpServerFailure, match=what):
        await client.call_tool(name, {}, 60)
    assert (await client.call_tool("count", {}, 60)).text == "1"


@pytest.mark.parametrize("name", ["endless", "large"])
async def test_answers_without_end_are_cut_off(here: Here, name: str) -> None:
    client = await here.client()
    with pytest.raises(ReplyTooLarge):
        await client.call_tool(name, {}, 60)
    assert (await client.call_tool("count", {}, 60)).text == "1"


async def test_giving_up_tells_the_server(here: Here) -> None:
    client = await here.client()
    with pytest.raises(TimeoutError):
        await client.call_tool("hang", {}, 0.2)
    async with asyncio.timeout(60):
        await here.mcp.dropped.wait()
    assert (await client.call_tool("count", {}, 60)).text == "1"


async def test_nobody_at_the_address_is_a_failure_and_a_page_is_no_server(modern: Here) -> None:
    page = HttpServer(modern.url.replace("/mcp", "/page"))
    with pytest.raises(McpServerFailure, match="refuses to begin: HTTP 405"):
        await McpClient(page.channel()).connect(60)
    await page.close()
    await modern.mcp.stop()
    gone = HttpServer(modern.url)
    with pytest.raises(McpServerFailure, match="cannot be reached"):
        await McpClient(gone.channel()).connect(60)
    await gone.close()
