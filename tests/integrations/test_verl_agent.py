# SPDX-License-Identifier: Apache-2.0
"""Worlds in verl. verl itself needs Ray and GPUs; what stands in for it here has the shape of its 0.9.1 classes."""

from __future__ import annotations

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from reward_kit.agent import Answer, World, tool
from reward_kit.errors import EnvironmentFailure
from reward_kit.integrations.verl_agent import verl_agent_loop, verl_tools
from reward_kit.models import Message, Sample
from tests.agent.worlds import Account

ROW = {"prompt": "Save 10.", "ground_truth": 10}


class ToolResponse(BaseModel):
    text: str | None = None


class Property(BaseModel):
    type: str | list[str]
    description: str | None = None
    enum: list[Any] | None = None


class Parameters(BaseModel):
    type: str
    properties: dict[str, Property]
    required: list[str] = []


class Function(BaseModel):
    name: str
    description: str
    parameters: Parameters


class ToolSchema(BaseModel):
    type: str
    function: Function


class BaseTool:
    def __init__(self, config: dict[str, Any], tool_schema: ToolSchema) -> None:
        self.config, self.tool_schema, self.name = config, tool_schema, tool_schema.function.name


class ToolListWrap:
    def __init__(self, tools: list[Any]) -> None:
        self.tools = tools


class Tokenizer:
    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return "".join(map(chr, ids))


class ToolAgentLoop:
    """verl's loop, with a script for a model: in each turn calls that are made together, in the end a text."""

    def __init__(self, tools: ToolListWrap, script: list[list[tuple[str, str]]], last: str) -> None:
        self.tools = {each.name: each for each in tools.tools}
        self.tokenizer, self.script, self.last = Tokenizer(), script, last
        self.prompt: list[dict[str, Any]] = []
        self.shown: list[str] = []

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **row: Any) -> Any:
        self.prompt = row["raw_prompt"]
        ids: list[int] = []
        mask: list[int] = []
        for turn in self.script:
            answers = await asyncio.gather(*(self._call_tool(*call) for call in turn))
            self.shown += [text for text, _ in answers]
            ids, mask = [*ids, 1, 2, 3], [*mask, 1, 1, 0]
        ids, mask = [*ids, *map(ord, self.last)], [*mask, *([1] * len(self.last))]
        return SimpleNamespace(response_ids=ids, response_mask=mask, reward_score=None, extra_fields={})

    async def _call_tool(self, name: str, arguments: str) -> tuple[str, float]:
        used, instance = self.tools[name], None
        try:
            instance, _ = await used.create(create_kwargs={})
            response, reward, _ = await used.execute(instance, json.loads(arguments), agent_data=None)
        except Exception as error:  # noqa: BLE001  # so does verl
            return f"Error executing tool '{name}': {error}", 0.0
        finally:
            if instance:
                await used.release(instance)
        return response.text, reward


@pytest.fixture(autouse=True)
def verl(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: dict[str, dict[str, Any]] = {
        "verl": {},
        "verl.tools": {},
        "verl.tools.base_tool": {"BaseTool": BaseTool},
        "verl.tools.schemas": {"OpenAIFunctionToolSchema": ToolSchema, "ToolResponse": ToolResponse},
        "verl.experimental": {},
        "verl.experimental.agent_loop": {},
        "verl.experimental.agent_loop.agent_loop": {"ToolListWrap": ToolListWrap},
        "verl.experimental.agent_loop.tool_agent_loop": {"ToolAgentLoop": ToolAgentLoop},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


def saved(messages: list[Message], facts: dict[str, Any], ground_truth: int) -> float:
    """1 where the account holds what was asked for, and 1 more where the model says so."""
    return float(facts["balance"] == ground_truth) + float(messages[-1].text == "Saved.")


def raises(messages: list[Message]) -> float:
    """Never judges."""
    raise ValueError("broken")


class Lamp(World):
    """A lamp that shows something first, and fails if the sample says so."""

    def __init__(self, sample: Sample) -> None:
        if sample.columns.get("fails"):
            raise OSError("no lamp")
        self.on = False

    def start(self) -> str:
        return "It is dark."

    @tool
    def switch(self, to: Literal["on", "off"], times: int | None = None) -> str:
        """Switch the lamp."""
        self.on = to == "on"
        return "Click."

    async def answer(self, message: Message) -> Answer:
        return Answer(await self.use_tools(message), reward=0.5, done=self.on)


class Narrow(World):
    """A world with room for one: it counts how many act in it at the same time."""

    def __init__(self, sample: Sample) -> None:
        self.inside = self.most = 0

    @tool
    async def enter(self) -> str:
        """Go in and out."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(20):
            await asyncio.sleep(0)
        self.inside -= 1
        return "Out again."

    def facts(self) -> dict[str, Any]:
        return {"most": self.most}


# ── tools without the loop ───────────────────────────────────────────────────────────────────────────────────────────


async def test_each_instance_of_a_tool_is_an_episode() -> None:
    Account.opened = Account.closed = 0
    deposit, _ = verl_tools(Account, saved, failed_score=-1.0)
    names = [(await deposit.create(create_kwargs=ROW))[0] for _ in range(2)]
    response, reward, metrics = await deposit.execute(names[0], {"amount": 10})
    assert (response.text, reward, metrics) == ("The balance is 10.", 0.0, {"failed": 0.0})
    _, _, metrics = await deposit.execute(names[1], {"sum": 1})
    assert metrics == {"failed": 1.0}
    assert [await deposit.calc_reward(name) for name in names] == [1.0, 0.0]
    for name in names:
        await deposit.release(name)
    assert (Account.opened, Account.closed) == (2, 2)
    with pytest.raises(EnvironmentFailure, match="create"):
        await deposit.execute(names[0], {"amount": 1})


async def test_what_cannot_be_judged_is_the_failed_score() -> None:
    deposit, _ = verl_tools(Account, raises, failed_score=-1.0)
    name, _ = await deposit.create(create_kwargs=ROW)
    assert await deposit.calc_reward(name) == -1.0
    await deposit.release(name)


async def test_the_schema_has_a_type_for_every_property_and_the_world_speaks_first() -> None:
    (switch,) = verl_tools(Lamp, failed_score=0.0)
    properties = switch.tool_schema.function.parameters.properties
    assert (properties["to"].type, properties["to"].enum) == ("string", ["on", "off"])
    assert properties["times"].type == ["integer", "null"]
    name, response = await switch.create("mine", create_kwargs={"prompt": "Light."})
    assert (name, response.text) == ("mine", "It is dark.")
    _, reward, _ = await switch.execute(name, {"to": "on"})
    over, nothing, _ = await switch.execute(name, {"to": "off"})
    assert (reward, over.text, nothing) == (0.5, "The episode is over.", 0.0)
    assert await switch.calc_reward(name) == 0.5
    await switch.release(name)


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def played(kind: type[Any], script: list[list[tuple[str, str]]], last: str, **row: Any) -> tuple[Any, Any]:
    loop = kind(tools=ToolListWrap([]), script=script, last=last)
    prompt = [{"role": "user", "content": "Save 10."}]
    return loop, await loop.run({}, raw_prompt=prompt, reward_model={"ground_truth": 10}, **row)


async def test_all_calls_of_an_episode_act_on_its_world_and_the_end_is_judged() -> None:
    Account.opened = Account.closed = 0
    kind = verl_agent_loop(Account, saved, failed_score=-1.0)
    five = ("deposit", '{"amount": 5}')
    both = await asyncio.gather(played(kind, [[five, five]], "Saved."), played(kind, [[five], []], "Done."))
    assert [output.reward_score for _, output in both] == [2.0, 0.0]
    assert [output.extra_fields for _, output in both] == [{"judged": 1.0}] * 2
    assert sorted(both[0][0].shown) == ["The balance is 10.", "The balance is 5."], "made together, run one by one"
    assert both[1][0].shown == ["The balance is 5."]
    assert (Account.opened, Account.closed) == (2, 2)


async def test_calls_that_are_made_together_enter_the_world_one_by_one() -> None:
    kind = verl_agent_loop(Narrow, lambda messages, facts: float(facts["most"]), failed_score=-1.0)
    _, output = await played(kind, [[("enter", "{}")] * 8], "Done.")
    assert output.reward_score == 1.0


async def test_the_world_speaks_after_the_prompt_and_its_rewards_count_without_a_judge() -> None:
    kind = verl_agent_loop(Lamp, failed_score=-1.0)
    loop, output = await played(kind, [[("switch", '{"to": "off"}')], [("switch", '{"to": "on"}')]], "Lit.")
    assert [message["content"] for message in loop.prompt] == ["Save 10.", "It is dark."]
    assert output.reward_score == 1.0


async def test_a_world_that_fails_is_the_failed_score_and_said_to_be() -> None:
    kind = verl_agent_loop(Lamp, failed_score=-1.0)
    _, output = await played(kind, [[("switch", '{"to": "on"}')]], "Lit.", extra_info={"fails": True})
    assert (output.reward_score, output.extra_fields) == (-1.0, {"judged": 0.0})
    _, output = await played(verl_agent_loop(Account, raises, failed_score=-1.0), [], "Done.")
    assert (output.reward_score, output.extra_fields) == (-1.0, {"judged": 0.0})
