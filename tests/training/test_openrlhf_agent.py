# SPDX-License-Identifier: Apache-2.0
"""Worlds of ours in OpenRLHF's own loop over turns, with a script for an engine and a small tokenizer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from openrlhf.utils.agent import AgentExecutorBase
from transformers import PreTrainedTokenizerBase

from reward_kit.integrations.openrlhf_agent import openrlhf_agent
from tests.agent.worlds import Account
from tests.training.conftest import make_tokenizer
from tests.training.saving import Lamp, call, raises, saved


class Engine:
    """What vLLM is to OpenRLHF: token ids in, token ids out; it says its texts one after another."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> None:
        self._tokenizer, self._texts = tokenizer, texts
        self.prompts: list[str] = []

    async def generate(self, prompt_ids: list[int], sampling_params: Any, multi_modal_data: Any = None) -> Any:
        self.prompts.append(self._tokenizer.decode(prompt_ids))
        await asyncio.sleep(0)
        text = self._texts[len(self.prompts) - 1]
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"][: sampling_params.max_tokens]
        reason = "length" if len(ids) == sampling_params.max_tokens else "stop"
        logprobs = [{token: SimpleNamespace(logprob=-0.25)} for token in ids]
        output = SimpleNamespace(
            token_ids=ids, text=self._tokenizer.decode(ids), finish_reason=reason, logprobs=logprobs
        )
        return SimpleNamespace(outputs=[output])


async def played(executor: Any, texts: list[str], prompt: str = "Save 10.", room: int = 4000) -> tuple[Any, Engine]:
    tokenizer = make_tokenizer()
    engine, sampling = Engine(tokenizer, texts), SimpleNamespace(max_tokens=16, logprobs=1)
    return await executor.execute(prompt, "10", sampling, room, tokenizer, engine), engine


async def test_an_episode_is_played_by_openrlhfs_loop_and_judged_in_the_end() -> None:
    Account.opened = Account.closed = 0
    executor = openrlhf_agent(Account, saved, failed_score=-1.0)()
    assert isinstance(executor, AgentExecutorBase)
    texts = [call("deposit", amount=4), call("deposit", amount=6), "Saved."]
    response, engine = await played(executor, texts)
    assert (response["reward"], response["scores"], response["truncated"]) == (2.0, 2.0, False)
    assert response["extra_logs"] == {"judged": 1.0, "steps": 3.0}
    assert engine.prompts[1:] == [
        f"Save 10.{texts[0]}\nThe balance is 4.",
        f"{engine.prompts[1]}{texts[1]}\nThe balance is 10.",
    ]
    assert len(response["action_ranges"]) == 3
    assert len(response["rollout_log_probs"]) == len(response["observation_tokens"])
    assert (Account.opened, Account.closed) == (1, 1)


async def test_what_comes_back_can_be_made_an_experience() -> None:
    """As openrlhf.trainer.ppo_utils.samples_generator does, whose module cannot be imported without vLLM."""
    for kind, prompt in ((Lamp, "Light it."), (Lamp, "broken at once"), (Lamp, "broken later")):
        response, _ = await played(openrlhf_agent(kind, failed_score=-1.0)(), [call("switch", on=True)], prompt)
        info = {key: torch.tensor([value]) for key, value in response["extra_logs"].items()}
        assert set(info) == {"judged", "steps"}
        assert torch.tensor([response["reward"]]).dtype == torch.tensor([response["scores"]]).dtype == torch.float32
        assert torch.tensor([response["truncated"]]).dtype == torch.bool


async def test_many_episodes_of_one_executor_have_a_world_each() -> None:
    Lamp.opened = Lamp.closed = 0
    executor = openrlhf_agent(Lamp, failed_score=-1.0)()
    texts = [[call("switch", on=False)] * steps + [call("switch", on=True)] for steps in range(8)]
    all_played = await asyncio.gather(*(played(executor, each, "Light it.") for each in texts))
    assert [response["reward"] for response, _ in all_played] == [0.5 * (steps + 1) for steps in range(8)]
    assert all(engine.prompts[0] == "Light it.\nIt is dark." for _, engine in all_played)
    assert (Lamp.opened, Lamp.closed) == (8, 8)


async def test_what_the_room_for_tokens_cuts_off_is_judged_and_closed_all_the_same() -> None:
    Lamp.opened = Lamp.closed = 0
    response, _ = await played(openrlhf_agent(Lamp, failed_score=-1.0)(), [call("switch", on=False)] * 9, "Go.", 150)
    assert (response["reward"], response["truncated"], response["extra_logs"]["judged"]) == (1.0, True, 1.0)
    assert (Lamp.opened, Lamp.closed) == (1, 1)


@pytest.mark.parametrize("prompt", ["broken at once", "broken later"])
async def test_a_world_that_fails_is_the_failed_score_and_said_to_be(prompt: str) -> None:
    response, engine = await played(openrlhf_agent(Lamp, failed_score=-1.0)(), [call("switch", on=True)] * 2, prompt)
    assert (response["reward"], response["extra_logs"]["judged"]) == (-1.0, 0.0)
    assert len(engine.prompts) == 1, "nothing more is generated for it"


async def test_an_episode_that_cannot_be_judged_is_the_failed_score() -> None:
    response, _ = await played(openrlhf_agent(Account, raises, failed_score=-1.0)(), ["Done."])
    assert (response["reward"], response["extra_logs"]["judged"]) == (-1.0, 0.0)


async def test_what_the_world_shows_is_written_as_one_says() -> None:
    def chatml(messages: Any) -> str:
        return "".join(f"</s><s>{each.role}: {each.text}</s><s>assistant: " for each in messages)

    executor = openrlhf_agent(Account, failed_score=0.0, written=chatml)()
    _, engine = await played(executor, [call("deposit", amount=4), "Done."])
    assert engine.prompts[1].endswith("</s><s>tool: The balance is 4.</s><s>assistant: ")


def test_openrlhf_finds_the_executor_in_a_file(tmp_path: Path) -> None:
    """As openrlhf.trainer.ray.vllm_engine loads `--train.agent_func_path`."""
    import importlib.util

    file = tmp_path / "agent.py"
    file.write_text(
        "from reward_kit.integrations.openrlhf_agent import openrlhf_agent\n"
        "AgentExecutor = openrlhf_agent('tests.agent.worlds:Account', failed_score=0.0)\n"
    )
    spec = importlib.util.spec_from_file_location("agent_module", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.AgentExecutor, AgentExecutorBase)
    module.AgentExecutor()
