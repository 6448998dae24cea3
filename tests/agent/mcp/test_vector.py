# SPDX-License-Identifier: Apache-2.0
"""The inherited way to many environments: `make`, `rollout`, policies, record and playback."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from reward_kit.agent.environment import environment_of
from reward_kit.agent.mcp.server import ToolServer, serve_http
from reward_kit.config_models import Sampling
from reward_kit.errors import ConfigError
from reward_kit.generation.mock import MockModelClient
from reward_kit.mcp.clients import IntermediaryMCPClient
from reward_kit.mcp.execution.manager import ExecutionManager
from reward_kit.mcp.execution.policy import FireworksPolicy, LLMBasePolicy
from reward_kit.mcp.types import DatasetRow, MCPSession, MCPToolCall, Trajectory
from reward_kit.mcp_env import MCPVectorEnv, make, rollout, test_mcp
from reward_kit.models import ChatCompletionMessageToolCall, Completion, Failure, FunctionCall, Message, SentBack
from reward_kit.playback_policy import PlaybackPolicyBase
from tests.agent.mcp.game import Game

DATASET: list[dict[str, Any]] = [
    {
        "id": f"task-{seed}",
        "system_prompt": f"You are player {seed}.",
        "user_prompt_template": "Seen: {observation}. Reach 100.",
        "environment_context": {"seed": seed},
    }
    for seed in (70, 10, 40)
]


async def serve(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    await runner.cleanup()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server of ours: no sessions, a world for each environment."""
    async for address in serve(serve_http(ToolServer(environment_of(Game), handles=True))):
        yield address


class OldGym:
    """A server of 2025-11-25 with sessions, which tells rewards beside the protocol."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.app = web.Application()
        self.app.router.add_post("/mcp", self.post)
        self.app.router.add_delete("/mcp", self.delete)
        self.app.router.add_get("/control/{what}", self.control)
        self.broken = False

    async def post(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["method"] == "initialize":
            session = uuid.uuid4().hex
            seed = body["params"]["clientInfo"].get("_extra", {}).get("seed", 0)
            self.sessions[session] = {"value": seed, "reward": 0.0}
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            answer = web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": told})
            answer.headers["Mcp-Session-Id"] = session
            return answer
        state = self.sessions.get(request.headers.get("Mcp-Session-Id", ""))
        if state is None:
            return web.Response(status=400)
        if "id" not in body:
            return web.Response(status=202)
        result: dict[str, Any] = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
        if body["method"] == "tools/call":
            state["value"] += body["params"]["arguments"]["amount"]
            state["reward"] = 1.0 if state["value"] >= 100 else 0.0
            result = {"content": [{"type": "text", "text": json.dumps({"value": state["value"]})}]}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})

    async def delete(self, request: web.Request) -> web.Response:
        self.sessions.pop(request.headers["Mcp-Session-Id"])
        return web.Response()

    async def control(self, request: web.Request) -> web.Response:
        if self.broken:
            return web.Response(status=500, text="out of order")
        state = self.sessions[request.headers["mcp-session-id"]]
        told = {
            "initial_state": {"observation": f"it is {state['value']}"},
            "reward": {"reward": state["reward"]},
            "status": {"terminated": state["value"] >= 100, "truncated": False},
        }
        return web.json_response(told[request.match_info["what"]])


class Adder(MockModelClient):
    """A model that adds 20 until it is told that it has 100; slower in some environments than in others."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[Message]] = []

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], sampling: Sampling, **_: Any
    ) -> list[Completion | Failure]:
        self.asked.append(list(messages))
        await asyncio.sleep(0.01 * (len(messages) % 3))
        number = sum(message.role == "assistant" for message in messages)
        function = FunctionCall(name="add", arguments='{"amount": 20}')
        call = ChatCompletionMessageToolCall(id=f"call_{number}", type="function", function=function)
        return [Completion(message=Message(role="assistant", content=None, tool_calls=[call]))]


async def test_a_policy_acts_in_every_environment_until_it_ends(url: str) -> None:
    model = Adder()
    envs = make(url, dataset=DATASET, model_id="adder")
    assert isinstance(envs, MCPVectorEnv)
    assert envs.sessions[0].base_url == f"{url}/"
    trajectories = await rollout(envs, FireworksPolicy("adder", client=model), steps=20)
    assert [trajectory.steps for trajectory in trajectories] == [2, 5, 3]
    assert [trajectory.total_reward for trajectory in trajectories] == [1.0, 2.5, 1.5]
    assert all(trajectory.terminated and trajectory.error is None for trajectory in trajectories)
    assert trajectories[1].observations[-1] == {"observation": "110"}
    assert trajectories[0].actions[0] == "add({'amount': 20})"
    # No environment is asked with the conversation of another one, also when the first ones have ended.
    assert Counter(asked[0].text for asked in model.asked) == {
        "You are player 70.": 2,
        "You are player 10.": 5,
        "You are player 40.": 3,
    }
    for asked in model.asked:
        seed = int(asked[0].text.removeprefix("You are player ").rstrip("."))
        tools = [message.text for message in asked if message.role == "tool"]
        assert [message.role for message in asked[2:]] == ["assistant", "tool"] * len(tools)
        assert tools == [json.dumps({"observation": str(seed + 20 * (turn + 1))}) for turn in range(len(tools))]
        assert all("reward" not in json.dumps(message.as_request()) for message in asked)


async def test_a_model_gets_back_what_else_it_said(url: str) -> None:
    class Thinks(Adder):
        """An adder whose endpoint wants its thoughts back."""

        async def generate(self, *asked: Any, **more: Any) -> list[Completion | Failure]:
            (entry,) = await super().generate(*asked, **more)
            assert isinstance(entry, Completion)
            kept = SentBack(by="adder", thoughts=["reasoning"], fields={"tool_calls": [{"signed": "x"}]})
            update = {"reasoning_content": "hm", "sent_back": kept}
            return [entry.model_copy(update={"message": entry.message.model_copy(update=update)})]

    model = Thinks()
    await rollout(make(url, dataset=DATASET[:1], model_id="adder"), FireworksPolicy("adder", client=model), steps=20)
    said = [message.as_request("adder") for message in model.asked[-1] if message.role == "assistant"]
    assert said and all(turn["reasoning"] == "hm" and turn["tool_calls"][0]["signed"] == "x" for turn in said)
    assert all("reasoning" not in message.as_request() for message in model.asked[-1])


async def test_a_function_is_asked_for_all_environments_at_once(url: str) -> None:
    sizes = []

    def policy(schemas: list[Any], observations: list[Any], systems: list[str], users: list[str]) -> list[MCPToolCall]:
        sizes.append(len(schemas))
        assert [tool["name"] for tool in schemas[0]] == ["add", "look", "fall", "crash", "wait"]
        assert schemas[0][0]["input_schema"]["required"] == ["amount"]
        return [MCPToolCall("add", {"amount": 30}) for _ in schemas]

    trajectories = await rollout(make(url, dataset=DATASET), policy)
    assert sizes == [3, 2, 1]
    assert [trajectory.steps for trajectory in trajectories] == [1, 3, 2]


async def test_old_servers_tell_rewards_beside_the_protocol() -> None:
    gym = OldGym()
    async for url in serve(gym.app):
        trajectories = await rollout(make(url, dataset=DATASET), FireworksPolicy("adder", client=Adder()))
        assert [trajectory.rewards for trajectory in trajectories] == [[0.0, 1.0], [0.0] * 4 + [1.0], [0.0, 0.0, 1.0]]
        assert trajectories[0].observations == [{"observation": "it is 70"}, {"value": 90}, {"value": 110}]
        assert gym.sessions == {}


async def test_an_environment_that_fails_has_no_score(url: str) -> None:
    def policy(schemas: list[Any], *_: Any) -> list[MCPToolCall]:
        return [MCPToolCall("crash", {}), *(MCPToolCall("add", {"amount": 90}) for _ in schemas[1:])]

    gym = OldGym()
    async for old in serve(gym.app):
        envs = make(old, n=1, seeds=[1])

        def breaking(*_: Any) -> list[MCPToolCall]:
            gym.broken = True
            return [MCPToolCall("add", {"amount": 1})]

        (trajectory,) = await rollout(envs, breaking)
        assert math.isnan(trajectory.total_reward)
        assert "out of order" in str(trajectory.error)
    # That a tool fails is for the model, and no failure of the environment.
    trajectories = await rollout(make(url, dataset=DATASET), policy, steps=1)
    assert "the sky fell down" in trajectories[0].observations[-1]["error"]


async def test_what_was_recorded_is_played_without_a_model(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, log = tmp_path / "recording.jsonl", tmp_path / "log.jsonl"
    monkeypatch.setenv("REWARD_KIT_PLAYBACK_FILE", str(file))
    policy = FireworksPolicy("adder", client=Adder())
    assert not policy.is_playback_mode()
    recorded = await rollout(make(url, dataset=DATASET), policy)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 10
    assert lines[0].keys() == {"env_index", "step", "messages"}
    with file.open("a") as torn:
        torn.write('{"env_index": 0, "ste')

    playing = FireworksPolicy("no model is asked")
    assert playing.is_playback_mode()
    played = await rollout(make(url, dataset=DATASET), playing, openai_format_log_file=str(log))
    assert [trajectory.observations for trajectory in played] == [trajectory.observations for trajectory in recorded]
    assert [trajectory.rewards for trajectory in played] == [trajectory.rewards for trajectory in recorded]
    progress = playing.get_playback_progress()
    assert progress["environments"][1] == {"current_step": 5, "total_steps": 5, "completed": True}
    assert not playing.has_more_playback_data(0)
    first = json.loads(log.read_text().splitlines()[0])
    assert first["metadata"]["total_reward"] == 1.0
    assert [message["role"] for message in first["messages"]] == ["system", "user", *["assistant", "tool"] * 2]
    assert len(file.read_text().splitlines()) == 11, "playing records nothing"


async def test_a_recording_that_ends_early_ends_the_episode(url: str) -> None:
    class Short(PlaybackPolicyBase):
        async def _generate_live_tool_calls(self, *_: Any) -> list[MCPToolCall]:
            raise AssertionError("this policy only plays")

    call = {"function": {"name": "add", "arguments": '{"amount": 1}'}}
    steps = [{"step": 0, "messages": [{"role": "assistant", "tool_calls": [call]}]}]
    trajectories = await rollout(make(url, dataset=DATASET[:2]), Short(_playback_actions={"0": steps}))
    assert [trajectory.steps for trajectory in trajectories] == [2, 1]
    assert trajectories[0].observations[1] == {"observation": "71"}
    assert trajectories[0].control_plane_summary["termination_reason"] == "playback_terminated"


def test_an_empty_recording_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text("nothing\n")
    monkeypatch.setenv("REWARD_KIT_PLAYBACK_FILE", str(file))
    with pytest.raises(ConfigError, match="holds no steps"):
        FireworksPolicy("m")


async def test_a_policy_of_ones_own(url: str) -> None:
    class Mine(LLMBasePolicy):
        async def _make_llm_call(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
            assert tools[0]["function"]["name"] == "add"
            if any(message["role"] == "tool" for message in messages):
                return {"choices": [{"message": {"content": "enough"}}]}
            function = {"name": "add", "arguments": '{"amount": 5}'}
            return {"choices": [{"message": {"content": None, "tool_calls": [{"id": "x", "function": function}]}}]}

    (trajectory,) = await rollout(make(url, seeds=[3]), Mine("mine"))
    assert trajectory.actions[-1].startswith("_no_tool_call")
    assert (trajectory.observations[1], trajectory.terminated) == ({"observation": "8"}, True)


async def test_a_server_is_tried(url: str) -> None:
    found = await test_mcp(url, [1, 2])
    assert found["successful"] == 2
    assert "add" in found["results"][0]["tools"]
    gone = await test_mcp("http://127.0.0.1:1/mcp", [1])
    assert (gone["successful"], gone["results"][0]["status"]) == (0, "failed")


async def test_sessions_may_be_begun_and_closed_alone(url: str) -> None:
    row = DatasetRow("a", 5, "", "{observation}", {})
    session = MCPSession("s", url, 5, "m", row)
    await ExecutionManager().initialize_sessions([session])
    assert session._mcp_session is not None
    await ExecutionManager().close_sessions([session])
    assert session._mcp_session is None
    assert Trajectory(session, [], [], [], False, 0.0, 0, 0.0).error is None


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(ValueError, match="not the address"):
        make("localhost:8000", n=1)
    with pytest.raises(ValueError, match="how many environments"):
        make("http://localhost:8000/mcp")
    with pytest.raises(ValueError, match="1 seeds for 2"):
        make("http://localhost:8000/mcp", n=2, seeds=[1])
    host = make("http://example.com/mcp/", n=1).sessions[0]
    assert host.base_url == "http://example.com/mcp/"


async def test_the_client_of_an_intermediary() -> None:
    async def post(request: web.Request) -> web.Response:
        body = await request.json()
        if body["method"] == "server/discover":
            result: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        else:
            result = {"content": [{"type": "text", "text": json.dumps(body["params"])}]}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})

    app = web.Application()
    app.router.add_post("/mcp", post)
    async for url in serve(app):
        client = IntermediaryMCPClient(url)
        begun = await client.initialize_session([{"backend_name_ref": "files", "num_instances": 1}])
        assert begun["name"] == "initialize_session"
        called = await client.call_backend_tool("s", "i", "files", "read", {"path": "a"})
        assert called["arguments"]["args"]["tool_args"] == {"path": "a"}
        assert (await client.list_backend_tools("s", "i", "files"))["name"] == "list_backend_tools"
        assert (await client.cleanup_session("s"))["arguments"] == {"args": {"session_id": "s"}}
        await client.close()
