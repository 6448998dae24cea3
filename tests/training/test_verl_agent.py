# SPDX-License-Identifier: Apache-2.0
"""Worlds of ours in verl's own loop over tools, with a script for a server and a small tokenizer."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

import hydra
import pytest
from omegaconf import OmegaConf

from reward_kit.agent import Answer, World, tool
from reward_kit.errors import EnvironmentFailure
from reward_kit.integrations.verl_agent import verl_agent_loop, verl_tools
from reward_kit.models import Message, Sample
from tests.agent.worlds import Account
from tests.training.conftest import make_tokenizer
from tests.training.saving import call, cut_off, most, raises, saved

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # verl imports what Ray says is going to move
    from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap, ToolListWrap
    from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
    from verl.tools.base_tool import BaseTool
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.rollout.replica import TokenOutput

ROW = {"prompt": "Save 10.", "ground_truth": 10}


class Lamp(World):
    """A lamp that shows something first, and fails where the sample says so."""

    def __init__(self, sample: Sample) -> None:
        self.fails, self.on = sample.columns.get("fails"), False
        if self.fails == "at once":
            raise OSError("no lamp")

    def start(self) -> str:
        return "It is dark."

    @tool
    def switch(self, to: Literal["on", "off"], times: int | None = None) -> str:
        """Switch the lamp."""
        self.on = to == "on"
        return "Click."

    async def answer(self, message: Message) -> Answer:
        if self.fails == "later":
            raise OSError("the bulb burst")
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
    assert isinstance(deposit, BaseTool)
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


class Server:
    """What a server of models is to verl: token ids in, token ids out; it says its texts one after another."""

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self._tokenizer, self._texts = tokenizer, texts
        self.prompts: list[str] = []

    async def generate(self, request_id: str, *, prompt_ids: list[int], **_: Any) -> TokenOutput:
        self.prompts.append(self._tokenizer.decode(prompt_ids))
        await asyncio.sleep(0)
        text = f"{self._texts[len(self.prompts) - 1]}</s>"
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return TokenOutput(token_ids=ids, log_probs=[-0.25] * len(ids))


def loop_of(kind: type[Any], texts: Sequence[str], tools: Sequence[Any] = (), **limits: Any) -> tuple[Any, Server]:
    """The loop as verl's worker makes it: by hydra, from its name, with the tools of the config."""
    turns = {
        "max_user_turns": None, "max_assistant_turns": None, "max_parallel_calls": 8, "max_tool_response_length": 256,
        "tool_response_truncate_side": "middle", "format": "hermes",
    } | limits  # fmt: skip
    rollout = {
        "multi_turn": turns, "prompt_length": 2048, "response_length": limits.pop("response_length", 4096),
        "full_determinism": False,
    }  # fmt: skip
    module, tokenizer = ModuleType("worlds_in_verl"), make_tokenizer()
    module.WorldLoop = kind  # type: ignore[attr-defined]
    sys.modules["worlds_in_verl"] = module
    server = Server(tokenizer, texts)
    loop = hydra.utils.instantiate(
        {"_target_": "worlds_in_verl.WorldLoop"},
        trainer_config=DictConfigWrap(OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}})),
        server_manager=server, tokenizer=tokenizer, processor=None, dataset_cls=RLHFDataset,
        data_config=DictConfigWrap(OmegaConf.create({})), hf_model_type=None, tools=ToolListWrap(list(tools)),
    )  # fmt: skip
    return loop, server


async def played(
    kind: type[Any], texts: Sequence[str], extra: dict[str, Any] | None = None, **limits: Any
) -> tuple[AgentLoopOutput, Server]:
    loop, server = loop_of(kind, texts, **limits)
    assert isinstance(loop, ToolAgentLoop)
    prompt = [{"role": "user", "content": "Save 10."}]
    output = await loop.run({}, raw_prompt=prompt, reward_model={"ground_truth": 10}, extra_info=extra or {})
    assert isinstance(output, AgentLoopOutput)
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs or ())
    output.as_dict()  # which verl makes its tensors of
    return output, server


async def test_all_calls_of_an_episode_act_on_its_world_and_the_end_is_judged() -> None:
    Account.opened = Account.closed = 0
    kind = verl_agent_loop(Account, saved, failed_score=-1.0)
    five = call("deposit", amount=5)
    both = await asyncio.gather(played(kind, [five + five, "Saved."]), played(kind, [five, "Done."]))
    assert [output.reward_score for output, _ in both] == [2.0, 0.0]
    assert [output.extra_fields["judged"] for output, _ in both] == [1.0] * 2
    shown = both[0][1].prompts[1]
    assert shown.index("The balance is 5.") < shown.index("The balance is 10."), "made together, run one by one"
    assert "The balance is 10." not in both[1][1].prompts[1]
    assert (Account.opened, Account.closed) == (2, 2)


async def test_calls_that_are_made_together_enter_the_world_one_by_one() -> None:
    output, _ = await played(verl_agent_loop(Narrow, most, failed_score=-1.0), [call("enter") * 8, "Done."])
    assert output.reward_score == 1.0


async def test_the_world_speaks_after_the_prompt_and_the_loop_ends_with_it() -> None:
    kind = verl_agent_loop(Lamp, failed_score=-1.0)
    output, server = await played(kind, [call("switch", to="off"), call("switch", to="on"), "never said"])
    assert "Save 10." in server.prompts[0] and server.prompts[0].endswith("It is dark.</s><s>assistant: ")
    assert len(server.prompts) == 2, "nothing is generated in a world that is over"
    assert output.reward_score == 1.0
    assert output.extra_fields["tool_rewards"] == [0.5, 0.5]


async def test_tools_of_the_config_stay_beside_the_worlds() -> None:
    (other,) = verl_tools(Narrow, failed_score=0.0)
    loop, _ = loop_of(verl_agent_loop(Account, failed_score=0.0), [], [other])
    assert set(loop.tools) == {"enter", "deposit", "balance_now"}


@pytest.mark.parametrize("fails", ["at once", "later"])
async def test_a_world_that_fails_is_the_failed_score_and_said_to_be(fails: str) -> None:
    kind = verl_agent_loop(Lamp, failed_score=-1.0)
    output, _ = await played(kind, [call("switch", to="on"), "Lit."], {"fails": fails})
    assert (output.reward_score, output.extra_fields["judged"]) == (-1.0, 0.0)


async def test_an_episode_that_cannot_be_judged_is_the_failed_score() -> None:
    output, _ = await played(verl_agent_loop(Account, raises, failed_score=-1.0), ["Done."])
    assert (output.reward_score, output.extra_fields["judged"]) == (-1.0, 0.0)


@pytest.mark.parametrize(
    ("texts", "limits", "cut"),
    [
        ([call("deposit", amount=5), "Done."], {}, 0.0),
        ([call("deposit", amount=5)] * 3, {"max_assistant_turns": 2}, 1.0),
        ([call("deposit", amount=5), "A long farewell" * 9], {"response_length": 200}, 1.0),
        ([call("deposit", amount=5), "never said"], {"response_length": 80}, 1.0),
    ],
)
async def test_what_verls_limits_cut_off_is_judged_as_such(
    texts: list[str], limits: dict[str, Any], cut: float
) -> None:
    output, _ = await played(verl_agent_loop(Account, cut_off, failed_score=-1.0), texts, **limits)
    assert output.reward_score == cut
