# SPDX-License-Identifier: Apache-2.0
"""Our environments as MCP servers, spoken to by our own client over pipes and HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from reward_kit.agent.environment import Environment, World, environment_of
from reward_kit.agent.mcp.client import McpClient
from reward_kit.agent.mcp.environment import McpEnvironment
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.mcp.protocol import LEGACY, MODERN, RpcError
from reward_kit.agent.mcp.server import ToolServer, serve_http
from reward_kit.agent.mcp.stdio import StdioChannel
from reward_kit.datasets.interpret import sample_of
from reward_kit.errors import EnvironmentFailure
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message, Sample
from tests.agent.mcp.game import Game

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "reward_kit.agent.mcp.server", "tests/agent/mcp/game.py:Game"]


@pytest.fixture(params=[MODERN, LEGACY[0], LEGACY[-1]])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[McpClient]:
    arguments = ["--row", '{"seed": 40}', "--params", '{"step": 2}', "--facts"]
    channel = await StdioChannel.start([*COMMAND, *arguments], environment={}, directory=str(ROOT))
    client = McpClient(channel, version=None if request.param == MODERN else request.param)
    await client.connect(60)
    assert client.version == request.param
    yield client
    await client.close()


async def test_a_process_serves_one_world(client: McpClient) -> None:
    tools = {tool.name: tool for tool in await client.list_tools(60)}
    assert list(tools) == ["add", "look", "fall", "crash", "wait", "world_facts"]
    assert tools["add"].description == "Add to the number."
    assert tools["add"].parameters["properties"]["amount"] == {"type": "integer", "description": "how much"}
    assert tools["look"].reads
    assert (await client.call_tool("add", {"amount": 1}, 60)).text == "42"
    assert json.loads((await client.call_tool("look", {}, 60)).text) == {"value": 42}
    assert (await client.call_tool("world_facts", {}, 60)).structured == {"value": 42}


async def test_what_goes_wrong_is_said_as_the_protocol_has_it(client: McpClient) -> None:
    failed = await client.call_tool("fall", {}, 60)
    assert (failed.is_error, failed.text) == (True, "ValueError: the floor is wet")
    wrong = await client.call_tool("add", {"amount": "many"}, 60)
    assert wrong.is_error
    assert "amount" in wrong.text
    with pytest.raises(RpcError, match="Unknown tool") as unknown:
        await client.call_tool("fly", {}, 60)
    assert unknown.value.code == -32602
    with pytest.raises(RpcError, match="the sky fell down"):
        await client.call_tool("crash", {}, 60)
    with pytest.raises(TimeoutError):
        await client.call_tool("wait", {}, 0.2)
    assert (await client.call_tool("add", {"amount": 1}, 60)).text == "42"


class Remembered(Environment):
    """Opens no world; remembers what it was asked to open one for."""

    def __init__(self) -> None:
        self.seen: list[Sample] = []

    async def open(self, sample: Sample) -> World:
        """Put the sample down."""
        self.seen.append(sample)
        raise EnvironmentFailure("that was all", retryable=False)


async def test_a_row_means_what_it_means_in_a_run() -> None:
    row = {"Question": "2 + 2?", "answer": 4, "seed": 3}
    environment = Remembered()
    server = ToolServer(environment, row=row)
    await server.reply_to(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')
    (sample,), read = environment.seen, sample_of(row)
    assert sample.model_copy(update={"id": read.id}) == read


@pytest.fixture
async def url() -> AsyncIterator[str]:
    runner = web.AppRunner(serve_http(ToolServer(environment_of(Game), handles=True)), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    await runner.cleanup()


async def test_worlds_behind_an_address_are_kept_apart_by_handles(url: str) -> None:
    http = HttpServer(url)
    client = McpClient(http.channel())
    await client.connect(60)
    assert client.version == MODERN
    one, other = [
        (await client.call_tool("open_world", {"row": {"seed": seed}}, 60)).structured["world_id"] for seed in (1, 2)
    ]
    assert (await client.call_tool("add", {"amount": 10, "world_id": one}, 60)).text == "11"
    assert (await client.call_tool("add", {"amount": 10, "world_id": other}, 60)).text == "12"
    await client.call_tool("close_world", {"world_id": one}, 60)
    with pytest.raises(RpcError, match="no world of that world_id"):
        await client.call_tool("look", {"world_id": one}, 60)
    with pytest.raises(RpcError, match="Unknown tool"):
        await client.call_tool("world_facts", {"world_id": other}, 60)
    await client.close()
    await http.close()


async def test_what_a_turn_is_worth_reaches_a_world_of_ours_and_no_model(url: str) -> None:
    handle = {"tool": "open_world", "argument": "world_id", "close_tool": "close_world", "columns": {"row": "row"}}
    environment = McpEnvironment(url=url, handle=handle)
    world = await environment.open(Sample(id="s", messages=[], columns={"row": {"seed": 90}}))
    assert [tool.name for tool in world.tools] == ["add", "look", "fall", "crash", "wait"]
    function = FunctionCall(name="add", arguments='{"amount": 10}')
    call = ChatCompletionMessageToolCall(id="1", type="function", function=function)
    answer = await world.answer(Message(role="assistant", content=None, tool_calls=[call]))
    assert (answer.messages[0].text, answer.reward, answer.done) == ("100", 0.5, True)
    await world.close()
    await environment.close()


async def test_headers_that_say_something_else_and_foreign_pages_are_refused(url: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    good = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    async with aiohttp.ClientSession() as session:
        for headers, status in (
            (good, 200),
            ({**good, "Mcp-Method": "tools/call"}, 400),
            ({"Mcp-Method": "tools/list"}, 400),
            ({**good, "Origin": "http://evil.example"}, 403),
            ({**good, "Origin": "http://localhost:3000"}, 200),
        ):
            async with session.post(url, json=body, headers=headers) as response:
                assert response.status == status
        for text in (b"no json", b"[1]", b'{"id": [1], "method": "ping"}', b'{"id": 1, "method": 5}'):
            async with session.post(url, data=text) as response:
                assert response.status == 400
        async with session.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "resources/list"}) as response:
            assert response.status == 404
