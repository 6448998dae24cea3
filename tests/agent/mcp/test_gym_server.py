# SPDX-License-Identifier: Apache-2.0
"""Servers that were written for the older public package: by sessions, by handles, and as a run's environment."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import reward_kit.mcp
from reward_kit import evaluate
from reward_kit.agent.mcp.gym_server import serve_gym
from reward_kit.mcp.adapter import EnvironmentAdapter
from reward_kit.mcp.execution.policy import FireworksPolicy
from reward_kit.mcp.mcpgym import McpGym
from reward_kit.mcp_env import MCPVectorEnv, make, rollout
from tests.agent.mcp.lake import Lake, LakeMcp
from tests.agent.mcp.test_vector import serve
from tests.agent.worlds import Model, call, calls
from tests.loopback.runs import lines


@pytest.fixture
async def url() -> AsyncIterator[str]:
    Lake.closed.clear()
    async for address in serve(serve_gym(LakeMcp(seed=2))):
        yield address


class Old:
    """A client of 2025-11-25."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url
        self._headers: dict[str, str] = {}

    async def begin(self, **extra: Any) -> dict[str, Any]:
        info = {"name": "old", "version": "1", "_extra": extra}
        told = await self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        await self.ask("notifications/initialized", notice=True)
        return told

    async def ask(self, method: str, *, notice: bool = False, **params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if notice else {"id": 1})}
        async with self._http.post(self._url, json=body, headers=self._headers) as response:
            if method == "initialize":
                self._headers = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"]}
            if notice:
                assert response.status == 202
                return {}
            found: dict[str, Any] = (await response.json())["result"]
            return found

    async def move(self, action: str) -> dict[str, Any]:
        return await self.ask("tools/call", name="lake_move", arguments={"action": action})

    async def control(self, what: str) -> Any:
        async with self._http.get(f"{self._url.removesuffix('/mcp')}/control/{what}", headers=self._headers) as said:
            return await said.json() if said.status == 200 else said.status

    async def end(self) -> int:
        async with self._http.delete(self._url, headers=self._headers) as response:
            return response.status


def test_it_is_imported_from_where_it_was() -> None:
    assert (reward_kit.mcp.McpGym, reward_kit.mcp.EnvironmentAdapter) == (McpGym, EnvironmentAdapter)
    with pytest.raises(AttributeError):
        reward_kit.mcp.nothing  # noqa: B018


async def test_sessions_are_apart_and_rewards_are_beside_the_protocol(url: str) -> None:
    async with aiohttp.ClientSession() as http:
        one, two = Old(http, url), Old(http, url)
        assert (await one.begin(seed=3))["protocolVersion"] == "2025-06-18"
        await two.begin()
        assert await one.control("initial_state") == {"position": 3, "of": 5}
        assert await two.control("initial_state") == {"position": 2, "of": 5}, "the server's own seed"
        (offered,) = (await one.ask("tools/list"))["tools"]
        assert offered["description"].startswith("Move on the lake.")
        assert offered["inputSchema"]["properties"].keys() == {"action"}, "the context is no argument"
        wrong = await one.move("up")
        assert wrong["isError"] and "Invalid action 'UP'" in wrong["content"][0]["text"]
        assert await one.control("reward") == {"reward": 0.0, "step_count": 0}
        moved = await one.move("right")
        assert json.loads(moved["content"][0]["text"]) == {"position": 4, "of": 5, "action": "right"}
        assert await one.control("reward") == {"reward": 1.0, "step_count": 1}
        over = {"terminated": True, "truncated": False, "step_count": 1, "total_reward": 1.0}
        assert await one.control("status") == over
        assert await one.control("info") == {"moved": 1} and await one.control("place") == {"place": 4}
        assert (await two.control("status"))["step_count"] == 0
        assert await one.end() == 200 and await one.end() == 404 and await one.control("reward") == 404
        assert Lake.closed == [4]


async def test_it_is_played_in_by_policies(url: str) -> None:
    model = Model(lambda *_: calls(call("lake_move", {"action": "RIGHT"}, "c")))
    envs = make(url, seeds=[0, 1], model_id="m")
    assert isinstance(envs, MCPVectorEnv)
    played = await rollout(envs, FireworksPolicy("m", client=model), steps=9)
    assert [(each.steps, each.total_reward, each.terminated) for each in played] == [(4, 1.0, True), (3, 1.0, True)]
    assert played[0].observations[-1] == {"position": 4, "of": 5, "action": "RIGHT"}
    assert Lake.closed[:2] == [4, 4]


def test_it_is_the_environment_of_a_run(tmp_path: Path) -> None:
    lake = Path(__file__).with_name("lake.py")
    rows = [{"prompt": "Walk to the shore.", "seed": seed} for seed in (0, 2)]
    evaluate(
        rows, lambda facts, steps: facts["total_reward"] + len(steps) / 10, model="mock",
        mock={"function_path": f"{lake}:walks"}, agent={"environment": f"{lake}:LakeMcp"}, cache={"enabled": False},
        output_dir=str(tmp_path / "run"),
    )  # fmt: skip
    judged = lines(tmp_path / "run" / "results.jsonl")
    assert [row["evaluation_score"] for row in judged] == [1.4, 1.2]
    assert [row["messages"][1]["content"] for row in judged] == [
        '{"position": 0, "of": 5}',
        '{"position": 2, "of": 5}',
    ]
    assert [step["reward"] for step in judged[1]["steps"]] == [0.0, 1.0]
