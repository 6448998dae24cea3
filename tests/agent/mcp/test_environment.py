# SPDX-License-Identifier: Apache-2.0
"""Worlds that are MCP servers: a server of its own for each rollout, whichever way it is kept apart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reward_kit.agent.environment import World
from reward_kit.agent.mcp.contract import McpServerFailure
from reward_kit.agent.mcp.environment import McpEnvironment
from reward_kit.errors import AuthError, ConfigError, EnvironmentFailure
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message, Sample
from tests.agent.mcp.conftest import SERVER
from tests.agent.mcp.http_server_of_ours import HttpMcp

BARE: dict[str, Any] = {"command": [sys.executable, str(SERVER)], "sandbox": "none"}
SAMPLE = Sample(id="s", messages=[], columns={"seed": 7}, ground_truth="yes")


def calls(*wanted: tuple[str, dict[str, Any]]) -> Message:
    made = [
        ChatCompletionMessageToolCall(
            id=str(number), type="function", function=FunctionCall(name=name, arguments=json.dumps(arguments))
        )
        for number, (name, arguments) in enumerate(wanted)
    ]
    return Message(role="assistant", content=None, tool_calls=made)


async def said(world: World, name: str, **arguments: Any) -> str:
    """What the model is told of one call."""
    answer = await world.answer(calls((name, arguments)))
    (message,) = answer.messages
    text: str = message.text
    return text


@pytest.fixture
async def opened() -> AsyncIterator[Any]:
    """Opens environments by their settings, and closes them in the end."""
    environments: list[McpEnvironment] = []

    def make(**settings: Any) -> McpEnvironment:
        environments.append(McpEnvironment(**settings))
        return environments[-1]

    yield make
    for environment in environments:
        await environment.close()


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_each_rollout_has_a_process_of_its_own_and_none_is_used_twice(opened: Any) -> None:
    environment = opened(**BARE, warm=2)
    one, other = await asyncio.gather(environment.open(SAMPLE), environment.open(SAMPLE))
    assert [await said(one, "count") for _ in range(3)] == ["1", "2", "3"]
    assert await said(other, "count") == "1"
    await one.close()
    third = await environment.open(SAMPLE)
    assert await said(third, "count") == "1"


async def test_in_a_sandbox_a_server_sees_nothing_of_ours(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    monkeypatch.setenv("PASSED_ON", "yes")
    environment = opened(
        command="python3 server.py", files={"server.py": str(SERVER)}, env={"MINE": "1"}, env_from=["PASSED_ON"], warm=0
    )
    try:
        world = await environment.open(SAMPLE)
    except Exception as error:
        if "No sandbox backend works here" in str(error):
            pytest.skip("no sandbox works here")
        raise
    seen = json.loads(await said(world, "environment"))
    assert (seen["MINE"], seen["PASSED_ON"]) == ("1", "yes")
    assert "SOME_API_KEY" not in seen
    assert await said(world, "count") == "2"
    await world.close()


async def test_the_number_of_servers_is_bounded_and_the_next_rollout_waits(opened: Any) -> None:
    environment = opened(**BARE, servers=1, warm=0)
    first = await environment.open(SAMPLE)
    second = asyncio.create_task(environment.open(SAMPLE))
    done, _ = await asyncio.wait([second], timeout=0.3)
    assert not done
    await first.close()
    async with asyncio.timeout(60):
        assert await said(await second, "count") == "1"


async def test_a_server_without_state_is_shared(opened: Any) -> None:
    environment = opened(**BARE, stateless=True, warm=1)
    one, other = await environment.open(SAMPLE), await environment.open(SAMPLE)
    assert [await said(one, "count"), await said(other, "count")] == ["1", "2"]
    with pytest.raises(McpServerFailure):
        await said(one, "die")
    third = await environment.open(SAMPLE)
    assert await said(third, "count") == "1"


async def test_a_server_that_died_while_it_waited_for_a_rollout_is_passed_over(opened: Any) -> None:
    environment = opened(**BARE, warm=1)
    first = await environment.open(SAMPLE)
    pool = environment._servers._pool
    waiting = await pool._ahead[0]
    await waiting.channel.close()
    second = await environment.open(SAMPLE)
    assert [await said(world, "count") for world in (first, second)] == ["1", "1"]


async def test_a_variable_that_is_to_be_passed_on_must_be_there(opened: Any) -> None:
    with pytest.raises(ConfigError, match="'NOT_SET_ANYWHERE'"):
        await opened(**BARE, env_from=["NOT_SET_ANYWHERE"]).open(SAMPLE)


async def test_an_old_server_that_dies_of_a_question_is_begun_as_old_ones_are(opened: Any) -> None:
    environment = opened(command=[*BARE["command"], "fragile"], sandbox="none", warm=0)
    for _ in range(2):
        world = await environment.open(SAMPLE)
        assert await said(world, "count") == "1"


async def test_closing_ends_every_process(opened: Any) -> None:
    environment = opened(**BARE, warm=3)
    world = await environment.open(SAMPLE)
    clients = [world._client, *(await asyncio.gather(*environment._servers._pool._ahead))]
    await world.close()
    await environment.close()
    assert len(clients) == 4
    assert all(client.channel._process.returncode is not None for client in clients)


async def test_a_command_that_starts_no_server_is_a_failure_of_the_world(opened: Any) -> None:
    with pytest.raises(EnvironmentFailure, match="cannot be started"):
        await opened(command=["/no/such/server"], sandbox="none").open(SAMPLE)
    with pytest.raises(EnvironmentFailure, match="ended with status 0"):
        await opened(command=["true"], sandbox="none").open(SAMPLE)


# ── what the model is told ───────────────────────────────────────────────────────────────────────────────────────────


async def test_tools_that_fail_are_told_to_the_model_and_a_server_that_fails_is_not(opened: Any) -> None:
    world = await opened(**BARE, timeout=30, max_reply_bytes=100_000).open(SAMPLE)
    assert json.loads(await said(world, "fail"))["error"] == {"kind": "exception", "message": "the well is dry"}
    assert json.loads(await said(world, "refuse"))["error"]["kind"] == "schema"
    assert json.loads(await said(world, "large", size=1_000_000))["error"]["kind"] == "output"
    assert json.loads(await said(world, "again", person=1))["error"]["kind"] == "refused"
    assert json.loads(await said(world, "fly"))["error"]["kind"] == "unknown_tool"
    assert "characters left out" in await said(world, "large", size=50_000)
    with pytest.raises(EnvironmentFailure, match="falling piano") as caught:
        await said(world, "die")
    assert caught.value.retryable


async def test_a_tool_that_hangs_is_told_and_the_rollout_goes_on(opened: Any) -> None:
    world = await opened(**BARE, timeout=0.3).open(SAMPLE)
    assert json.loads(await said(world, "hang"))["error"]["kind"] == "timeout"


async def test_the_end_is_a_turn_without_calls(opened: Any) -> None:
    world = await opened(**BARE).open(SAMPLE)
    answer = await world.answer(Message(role="assistant", content="done"))
    assert (list(answer.messages), answer.done) == ([], True)


async def test_images_are_named_or_handed_on(opened: Any) -> None:
    assert "not shown" in await said(await opened(**BARE).open(SAMPLE), "image")
    world = await opened(**BARE, images=True).open(SAMPLE)
    (message,) = (await world.answer(calls(("image", {})))).messages
    assert [part["type"] for part in message.content] == ["text", "image_url"]
    assert message.content[1]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_which_tools_are_offered_and_under_which_names(opened: Any) -> None:
    world = await opened(**BARE, only=["add", "count", "say"], hide=["say"]).open(SAMPLE)
    assert [tool.name for tool in world.tools] == ["add", "count"]
    assert (world.tools[0].reads, world.tools[0].parallel, world.tools[1].reads) == (True, True, False)
    with pytest.raises(ConfigError, match="no tool 'fly'"):
        await opened(**BARE, only=["fly"]).open(SAMPLE)


async def test_tools_that_appear_are_offered_in_the_next_turn(opened: Any) -> None:
    world = await opened(command=[*BARE["command"], "legacy"], sandbox="none").open(SAMPLE)
    assert "grown" not in {tool.name for tool in world.tools}
    await said(world, "grow")
    assert "grown" in {tool.name for tool in world.tools}


async def test_calls_of_ours_prepare_the_world_and_tell_facts(opened: Any) -> None:
    start = [{"tool": "say", "arguments": {"text": "Welcome."}, "show": True}, {"tool": "count"}]
    facts = {"seed": {"tool": "add", "arguments": {"a": 1}, "columns": {"b": "seed"}}, "n": {"tool": "structured"}}
    world = await opened(**BARE, start=start, facts=facts).open(SAMPLE)
    assert [(message.role, message.content) for message in world.start()] == [("user", "Welcome.")]
    assert not {"say", "count", "add", "structured"} & {tool.name for tool in world.tools}
    assert await world.facts() == {"seed": "8", "n": {"n": 1}}


async def test_a_call_of_ours_that_fails_is_a_failure_of_the_world(opened: Any) -> None:
    with pytest.raises(EnvironmentFailure, match="the well is dry"):
        await opened(**BARE, start=[{"tool": "fail"}]).open(SAMPLE)
    world = await opened(**BARE, facts={"x": {"tool": "refuse"}}).open(SAMPLE)
    with pytest.raises(EnvironmentFailure, match="Unknown tool"):
        await world.facts()
    with pytest.raises(ConfigError, match="no column 'nope'"):
        await opened(**BARE, start=[{"tool": "add", "columns": {"a": "nope"}}]).open(SAMPLE)


async def test_only_a_deterministic_server_is_played_again(opened: Any) -> None:
    assert (await opened(**BARE).open(SAMPLE)).durability == "restart"
    assert (await opened(**BARE, deterministic=True).open(SAMPLE)).durability == "replay"


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def modern() -> AsyncIterator[HttpMcp]:
    mcp = HttpMcp()
    yield mcp
    await mcp.stop()


@pytest.fixture
async def legacy() -> AsyncIterator[HttpMcp]:
    mcp = HttpMcp(modern=False)
    yield mcp
    await mcp.stop()


async def test_a_modern_server_that_keeps_rollouts_together_is_refused(opened: Any, modern: HttpMcp) -> None:
    with pytest.raises(ConfigError, match="rollouts would see what the others do"):
        await opened(url=await modern.start()).open(SAMPLE)


async def test_without_state_all_share_it(opened: Any, modern: HttpMcp) -> None:
    environment = opened(url=await modern.start(), stateless=True)
    worlds = [await environment.open(SAMPLE) for _ in range(2)]
    assert [await said(world, "count") for world in worlds] == ["1", "2"]
    for world in worlds:
        await world.close()


async def test_a_handle_is_made_for_each_rollout_and_hidden_from_the_model(opened: Any, modern: HttpMcp) -> None:
    handle = {"tool": "basket", "argument": "basket_id"}
    environment = opened(url=await modern.start(), handle=handle)
    one, other = await environment.open(SAMPLE), await environment.open(SAMPLE)
    (put,) = [tool for tool in one.tools if tool.name == "put"]
    assert put.parameters["required"] == ["what"]
    assert list(put.parameters["properties"]) == ["what"]
    assert "basket" not in {tool.name for tool in one.tools}
    assert await said(one, "put", what="apples") == "apples"
    # A model that guesses the argument does not get into somebody else's basket.
    stolen = next(iter(modern.baskets.keys() - {one._hidden["basket_id"]}))
    assert await said(one, "put", what="pears", basket_id=stolen) == "apples, pears"
    assert await said(other, "put", what="nuts") == "nuts"
    for world in (one, other):
        await world.close()


async def test_a_header_tells_rollouts_apart(opened: Any, modern: HttpMcp) -> None:
    environment = opened(url=await modern.start(), rollout_header="X-Rollout")
    worlds = [await environment.open(SAMPLE) for _ in range(2)]
    values = [json.loads(await said(world, "headers"))["X-Rollout"] for world in [*worlds, *worlds]]
    assert values[:2] == values[2:]
    assert len(set(values)) == 2
    for world in worlds:
        await world.close()


async def test_old_servers_keep_rollouts_apart_by_sessions(opened: Any, legacy: HttpMcp) -> None:
    environment = opened(url=await legacy.start())
    worlds = [await environment.open(SAMPLE) for _ in range(2)]
    assert [await said(world, "count") for world in [*worlds, *worlds]] == ["1", "1", "2", "2"]
    for world in worlds:
        await world.close()
    assert len(legacy.deleted) == 2


async def test_a_key_comes_from_a_variable(opened: Any, modern: HttpMcp, monkeypatch: pytest.MonkeyPatch) -> None:
    url = await modern.start()
    with pytest.raises(AuthError, match="MCP_KEY"):
        await opened(url=url, stateless=True, key_env="MCP_KEY").open(SAMPLE)
    monkeypatch.setenv("MCP_KEY", "k-123")
    world = await opened(url=url, stateless=True, key_env="MCP_KEY").open(SAMPLE)
    assert json.loads(await said(world, "headers"))["Authorization"] == "Bearer k-123"
    await world.close()


async def test_a_server_that_goes_away_in_the_middle_is_a_failure_of_the_world(opened: Any, modern: HttpMcp) -> None:
    world = await opened(url=await modern.start(), stateless=True).open(SAMPLE)
    await modern.stop()
    with pytest.raises(EnvironmentFailure, match="cannot be reached"):
        await said(world, "count")
    await world.close()


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({}, "either 'command' or 'url' is needed"),
        ({"command": ["a"], "url": "http://localhost:1/mcp"}, "and not both"),
        ({"command": []}, "'command' is empty"),
        ({"url": "localhost"}, "not an address"),
        ({"url": "http://a:b@localhost/mcp"}, "holds a login"),
        ({"command": ["a"], "headers": {"A": "b"}}, "for a server with a 'url'"),
        ({"url": "http://localhost/mcp", "files": {"a": "b"}}, "for a server with a 'command'"),
        ({"command": ["a"], "sandbox": "none", "setup": ["true"]}, "for a sandbox"),
        ({"url": "http://localhost/mcp", "stateless": True, "rollout_header": "X"}, "needs no 'handle'"),
        ({"comand": ["a"]}, "did you mean 'command'"),
        ({"command": ["a"], "key_env": "not a name"}, "key_env"),
        ({"command": ["a"], "sandbox": "chroot"}, "sandbox"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        McpEnvironment(**settings)
