# SPDX-License-Identifier: Apache-2.0
"""Resources as environments: episodes act on forks, tools say what went wrong, a run is played again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reward_kit.agent.environment import World
from reward_kit.agent.episode import Episodes, replayed
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resource_environment import ResourceEnvironment, resource_class
from reward_kit.agent.resource_tools import load_registry
from reward_kit.agent.resources import SQLResource
from reward_kit.agent.tool_registry import ToolRegistry
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.errors import ConfigError, EnvironmentFailure
from reward_kit.models import ChatCompletionMessageToolCall, Completion, FunctionCall, Message, Rollout, Sample

BANK = {"schema_sql": "CREATE TABLE account (name TEXT, balance INTEGER); INSERT INTO account VALUES ('ann', 5);"}
SAMPLE = Sample(id="s", messages=[Message(role="user", content="Go.")])
Script = Sequence[Sequence[tuple[str, Any]]]


class Scripted:
    """A model that makes the calls it was told to make, turn by turn, and then answers."""

    model = "scripted"
    identity: ClassVar[dict[str, Any]] = {}

    def __init__(self, script: Script) -> None:
        self._script = script
        self.seen_tools: list[list[str]] = []

    async def generate(self, messages: Sequence[Message], *, draws: Any, tools: Any = None, **_: Any) -> Any:
        turn = sum(message.role == "assistant" for message in messages)
        self.seen_tools.append([tool["function"]["name"] for tool in tools or []])
        calls = [
            ChatCompletionMessageToolCall(
                id=f"{turn}-{place}",
                function=FunctionCall(name=name, arguments=given if isinstance(given, str) else json.dumps(given)),
            )
            for place, (name, given) in enumerate(self._script[turn] if turn < len(self._script) else [])
        ]
        return [Completion(message=Message(role="assistant", content="", tool_calls=calls or None)) for _ in draws]

    async def close(self) -> None:
        pass


async def played(environment: Any, script: Script, *, draws: Sequence[int] = (0,), **config: Any) -> list[Rollout]:
    model: Any = Scripted(script)
    return await Episodes(model, Sampling(), None, environment, AgentConfig(**config))(SAMPLE, draws)


def outputs(rollout: Rollout) -> list[str]:
    return [str(message.content) for message in rollout.turns if message.role == "tool"]


def sql(query: str) -> tuple[str, dict[str, str]]:
    return ("execute_sql", {"query": query})


async def test_every_episode_acts_on_a_fork_of_its_own() -> None:
    environment = ResourceEnvironment("SQLResource", BANK)
    script = [[sql("UPDATE account SET balance = balance + 1")], [sql("SELECT balance FROM account")]]
    rollouts = await played(environment, script, draws=range(5))
    assert [outputs(rollout)[1] for rollout in rollouts] == ['[{"balance":6}]'] * 5
    assert {rollout.ended for rollout in rollouts} == {"answered"}
    facts = rollouts[0].facts
    assert facts is not None and "CREATE TABLE account" in facts["state"]["schema"][0]
    await environment.close()


async def test_what_a_model_does_wrong_is_told_to_it_by_kind() -> None:
    environment = ResourceEnvironment("SQLResource", BANK)
    calls = [
        sql("SELEKT"), ("execute_sql", {}), ("execute_sql", {"query": 1}), ("execute_sql", {"query": "x", "y": 1}),
        ("execute_sql", {"query": "SELECT 1", "fetch_mode": "many"}), ("execute_sql", "{"), ("fly", {}),
        sql("ATTACH 'x' AS y"), sql("SELECT x'ff' AS b"),
    ]  # fmt: skip
    (rollout,) = await played(environment, [calls], max_bad_calls=100)
    assert rollout.steps is not None
    kinds = [use.error for use in rollout.steps[0].calls]
    assert kinds == ["exception", *["schema"] * 4, "bad_json", "unknown_tool", "exception", None]
    assert "syntax error" in outputs(rollout)[0]
    assert "only this database" in outputs(rollout)[7]
    assert outputs(rollout)[8] == '[{"b":"/w=="}]'
    await environment.close()


async def test_a_recorded_episode_is_played_again_in_a_fresh_fork() -> None:
    environment = ResourceEnvironment("SQLResource", BANK)
    (rollout,) = await played(environment, [[sql("INSERT INTO account VALUES ('bob', 1)")]])
    async with replayed(environment, rollout, AgentConfig()) as world:
        found = await world.resource.step("execute_sql", {"query": "SELECT count(*) FROM account", "fetch_mode": "val"})  # type: ignore[attr-defined]
        assert found == 2
    await environment.close()


@pytest.mark.parametrize(
    ("resource", "config", "call"),
    [
        ("SQLResource", BANK, sql("DELETE FROM account")),
        ("PythonStateResource", {"initial_state": {"n": 1}}, ("update_state", {"updates": {"n": 2}})),
        ("FileSystemResource", {"initial_files": {"a": "x"}}, ("write_file", {"path": "a", "content": "y"})),
    ],
)
async def test_a_snapshot_of_a_world_brings_another_one_to_its_state(resource: str, config: Any, call: Any) -> None:
    environment = ResourceEnvironment(resource, config)
    one, other = await environment.open(SAMPLE), await environment.open(SAMPLE)
    acting = {tool.name: tool for tool in one.tools}[call[0]]
    await acting.call(call[1])
    state = await one.snapshot()
    assert await other.snapshot() != state
    await other.restore(state)
    assert await other.snapshot() == state
    assert await other.facts() == await one.facts()
    for world in (one, other):
        await world.close()
    await environment.close()


tools = ToolRegistry("bank")


@tools.tool("Pay money into an account.", {"name": {"type": "string"}, "amount": {"type": "integer"}})
async def pay(name: str, amount: int, resource: ForkableResource, note: str = "") -> str:
    query = "UPDATE account SET balance = balance + ? WHERE name = ?"
    done = await resource.step("execute_sql", {"query": query, "parameters": [amount, name]})
    if not done["rowcount"]:
        raise ValueError(f"there is no account {name!r}")
    return "paid"


@tools.tool("Add.", {"type": "object", "properties": {"x": {"type": "number"}}, "required": []})
def add(x: float = 1.0) -> float:
    return x + 1


async def test_tools_of_a_registry_act_on_the_episodes_own_resource() -> None:
    environment = ResourceEnvironment(SQLResource, BANK, tools=tools, actions=False)
    right, nobody = {"name": "ann", "amount": 2}, {"name": "eve", "amount": 2}
    script = [
        [("pay", right), ("pay", nobody), ("add", {"x": 2})],
        [("pay", {"name": "ann"}), ("pay", {**right, "resource": 1}), sql("SELECT 1")],
    ]
    (rollout,) = await played(environment, script)
    assert rollout.steps is not None
    assert [use.error for step in rollout.steps for use in step.calls] == [
        None, "exception", None, "schema", "schema", "unknown_tool",
    ]  # fmt: skip
    assert outputs(rollout)[0] == "paid" and "eve" in outputs(rollout)[1] and outputs(rollout)[2] == "3"
    await environment.close()


async def test_the_model_cannot_choose_the_resource() -> None:
    registry = ToolRegistry("open")

    @registry.tool("Take anything.", {"type": "object", "properties": {}, "additionalProperties": True})
    def anything(**given: Any) -> str:
        return ", ".join(given)

    environment = ResourceEnvironment(SQLResource, BANK, tools=registry)
    (rollout,) = await played(environment, [[("anything", {"x": 1}), ("anything", {"resource": 1})]])
    assert outputs(rollout)[0] == "resource, x"
    assert "unexpected argument" in outputs(rollout)[1]
    await environment.close()


def test_a_registry_tells_its_tools_and_which_arguments_are_required() -> None:
    told = {tool["name"]: tool["parameters"] for tool in tools.get_openai_tools()}
    assert told["pay"]["required"] == ["name", "amount"]
    assert told["add"]["required"] == []
    assert tools.get_tool("pay") is pay and tools.get_tool("fly") is None
    with pytest.raises(ValueError, match="'pay' already"):
        tools.tool("Another.", {})(_other_pay())


def _other_pay() -> Callable[..., None]:
    def pay() -> None: ...

    return pay


def test_a_registry_is_found_in_a_module_or_by_name(tmp_path: Path) -> None:
    file = tmp_path / "own_tools.py"
    file.write_text(
        "from reward_kit.agent.tool_registry import ToolRegistry\nR = ToolRegistry('r')\n"
        "@R.tool('One.', {})\ndef one(): return 1\n"
    )
    assert list(load_registry(str(file)).tools) == ["one"]
    assert list(load_registry(f"{file}:R").tools) == ["one"]
    plain = tmp_path / "plain_tools.py"
    plain.write_text("def two(x, resource):\n    'Two.'\ndef helper(x): pass\n")
    parameters = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    assert load_registry(str(plain)).get_openai_tools() == [
        {"name": "two", "description": "Two.", "parameters": parameters}
    ]
    (tmp_path / "empty_tools.py").write_text("")
    for path, problem in [
        (str(tmp_path / "missing.py"), "cannot be loaded"),
        (f"{file}:one", "is a function"),
        (str(tmp_path / "empty_tools.py"), "has no tools"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            load_registry(path)


class Failing(SQLResource):
    """Cannot be set up."""

    closed = 0

    async def setup(self, config: dict[str, Any]) -> None:
        raise OSError("no room")

    async def close(self) -> None:
        type(self).closed += 1
        await super().close()


async def test_a_resource_that_cannot_be_set_up_fails_the_episode_and_is_closed() -> None:
    (rollout,) = await played(ResourceEnvironment(Failing), [])
    assert rollout.failure is not None and rollout.failure.type == EnvironmentFailure.__name__
    assert "no room" in rollout.failure.message
    assert Failing.closed == 2  # it was tried again, as world failures are


def test_what_is_no_resource_is_named() -> None:
    assert resource_class("SQLResource") is SQLResource
    for named, problem in [("Nothing", "SQLResource"), ("json:dumps", "ForkableResource"), ("nothing.here", "loaded")]:
        with pytest.raises(ConfigError, match=problem):
            resource_class(named)
    with pytest.raises(ConfigError, match="actions"):
        ResourceEnvironment("SQLResource", actions=False)


async def test_worlds_of_resources_that_cannot_be_written_down_begin_anew() -> None:
    environment = ResourceEnvironment("http_rollout", {"base_url": "http://127.0.0.1:9"})
    world: World = await environment.open(SAMPLE)
    assert world.durability == "restart"
    await world.close()
    await environment.close()
