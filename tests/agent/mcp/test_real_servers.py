# SPDX-License-Identifier: Apache-2.0
"""Our client against servers made with the package `mcp`, and its client against a server of ours.

The package is no dependency. It is looked for in this environment (`make test-frameworks` has one), and in those of the
interpreters that REWARD_KIT_MCP_PYTHONS names, separated by colons: so several versions can be tried in one run.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from reward_kit.agent.mcp.client import McpClient
from reward_kit.agent.mcp.contract import McpServerFailure
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.mcp.protocol import LEGACY, MODERN
from reward_kit.agent.mcp.stdio import StdioChannel

HERE = Path(__file__).parent
INTERPRETERS = [
    *([sys.executable] if find_spec("mcp") is not None else []),
    *filter(None, os.environ.get("REWARD_KIT_MCP_PYTHONS", "").split(":")),
]
OURS = [sys.executable, "-m", "reward_kit.agent.mcp.server", "tests/agent/mcp/game.py:Game"]
ASK = """
import asyncio, json, sys
command, directory = json.loads(sys.argv[1]), sys.argv[2]

async def new():
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=directory)
    async with Client(stdio_client(parameters)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("add", {"amount": 2})
        return tools, result.content[0].text

async def old():
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=directory)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("add", {"amount": 2})
        return tools, result.content[0].text

try:
    from mcp import Client
    ask = new
except ImportError:
    ask = old
print(json.dumps(asyncio.run(ask())))
"""

pytestmark = pytest.mark.skipif(
    not INTERPRETERS, reason="the package mcp is not installed: `make test-frameworks`, or set REWARD_KIT_MCP_PYTHONS"
)


def is_modern(interpreter: str) -> bool:
    code = "import importlib.metadata as m; print(m.version('mcp'))"
    version = subprocess.check_output([interpreter, "-c", code], text=True)
    return int(version.split(".")[0]) >= 2


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture(params=["stdio", "http"])
async def client(request: pytest.FixtureRequest, interpreter: str) -> AsyncIterator[McpClient]:
    if request.param == "stdio":
        channel = await StdioChannel.start([interpreter, str(HERE / "real_server.py")], environment={})
        client = McpClient(channel)
        await client.connect(100)
        yield client
        await client.close()
        return
    port = free_port()
    process = await StdioChannel.start([interpreter, str(HERE / "real_server.py"), str(port)], environment={})
    server = HttpServer(f"http://127.0.0.1:{port}/mcp")
    client = McpClient(server.channel())
    async with asyncio.timeout(100):
        while True:
            try:
                await client.connect(60)
                break
            except McpServerFailure:
                assert process.alive, "the server did not start"
                await asyncio.sleep(0.05)
    yield client
    await client.close()
    await server.close()
    await process.close()


@pytest.fixture(params=INTERPRETERS)
def interpreter(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.timeout(300)
async def test_a_server_made_with_the_package(client: McpClient, interpreter: str) -> None:
    assert client.version == (MODERN if is_modern(interpreter) else LEGACY[0])
    names = [tool.name for tool in await client.list_tools(60)]
    assert names == ["add", "weather", "bump", "boom", "slow", "die"]
    assert (await client.call_tool("add", {"a": 2, "b": 3}, 60)).text == "5"
    assert (await client.call_tool("weather", {"city": "Zürich \ud800"}, 60)).structured["city"] == "Zürich ?"
    assert [(await client.call_tool("bump", {}, 60)).text for _ in range(2)] == ["1", "2"]
    for name, arguments in (("boom", {}), ("add", {"a": "x"}), ("no_such_tool", {})):
        assert (await client.call_tool(name, arguments, 60)).is_error
    with pytest.raises(TimeoutError):
        await client.call_tool("slow", {}, 0.3)
    assert (await client.call_tool("bump", {}, 60)).text == "3"
    with pytest.raises(McpServerFailure) as caught:
        await client.call_tool("die", {}, 60)
    assert caught.value.retryable


@pytest.mark.timeout(300)
def test_the_package_is_a_client_of_a_server_of_ours(interpreter: str) -> None:
    import json

    asked = subprocess.run(
        [interpreter, "-c", ASK, json.dumps(OURS), str(HERE.parents[2])],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    tools, text = json.loads(asked.stdout)
    assert tools == ["add", "look", "fall", "crash", "wait"]
    assert text == "2"
