# SPDX-License-Identifier: Apache-2.0
"""Connections to the server of ours: as a process, in a sandbox, over HTTP."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from reward_kit.agent.mcp.client import McpClient, _warn_once
from reward_kit.agent.mcp.contract import Bounds
from reward_kit.agent.mcp.sandboxed import SandboxedChannel
from reward_kit.agent.mcp.stdio import StdioChannel
from reward_kit.errors import RewardKitError
from reward_kit.sandbox.choose import choose_backend
from reward_kit.sandbox.contract import SandboxSpec

SERVER = Path(__file__).with_name("server_of_ours.py")

Connect = Callable[..., Awaitable[McpClient]]
"""Starts a server in a mode and connects to it."""


@pytest.fixture(autouse=True)
def nothing_said_before() -> None:
    """What is said once is said once per test."""
    _warn_once.cache_clear()


@pytest.fixture(params=["bare", "sandboxed"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Connect to servers in every way that there is to run one; all of them are closed in the end."""
    clients: list[McpClient] = []
    backend = None
    if request.param == "sandboxed":
        try:
            backend = await choose_backend("auto")
        except RewardKitError as error:
            pytest.skip(f"no sandbox works here: {error}")

    async def start(mode: str = "modern", bounds: Bounds | None = None) -> McpClient:
        channel: StdioChannel | SandboxedChannel
        if backend is None:
            channel = await StdioChannel.start([sys.executable, str(SERVER), mode], environment={}, bounds=bounds)
        else:
            box = await backend.open(SandboxSpec(files={"server.py": SERVER.read_bytes()}))
            channel = await SandboxedChannel.start(box, ["python3", "server.py", mode], bounds)
        client = McpClient(channel)
        clients.append(client)
        await client.connect(60)
        return client

    yield start
    for client in clients:
        await client.close()
    if backend is not None:
        await backend.close()
