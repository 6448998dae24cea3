# SPDX-License-Identifier: Apache-2.0
"""An environment of ours in verifiers before 0.4: its own loop, a model that answers at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from reward_kit.integrations.verifiers_agent import verifiers_env
from reward_kit.models import Message
from tests.agent.worlds import Account

verifiers = pytest.importorskip("verifiers", reason="verifiers is not installed")
if not hasattr(verifiers, "MultiTurnEnv"):
    pytest.skip("verifiers 0.4 has no MultiTurnEnv", allow_module_level=True)


def saved(messages: list[Message], facts: dict[str, Any], ground_truth: str) -> float:
    """1.0 where the account holds what was asked for."""
    return float(str(facts["balance"]) == ground_truth)


def raises(messages: list[Message]) -> float:
    """Never judges."""
    raise ValueError("broken")


def replying(turn: int) -> Any:
    kind = import_module("openai.types.chat").ChatCompletion
    message: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if turn < 2:
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "deposit", "arguments": '{"amount": 5}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    fields = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return kind.model_validate(fields)


@pytest.fixture
def client() -> Any:
    clients = import_module("verifiers.clients")

    async def create(*, messages: list[Any], **_: Any) -> Any:
        return replying(sum(message["role"] == "assistant" for message in messages))

    bare = import_module("openai").AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9")
    bare.chat.completions.create = create
    return clients.OpenAIChatCompletionsClient(bare)


async def played(client: Any, reward: Any) -> Any:
    from datasets import Dataset

    data = Dataset.from_list([{"question": "Save 10.", "answer": "10"}, {"question": "Save 11.", "answer": "11"}])
    env = verifiers_env(Account, reward, failed_score=-1.0, dataset=data)
    return await env.evaluate(client, "m", num_examples=2, rollouts_per_example=2, max_concurrent=4)


async def test_episodes_are_played_and_judged_by_our_reward(client: Any) -> None:
    outputs = (await played(client, saved))["outputs"]
    assert sorted(output["reward"] for output in outputs) == [0.0, 0.0, 1.0, 1.0]
    roles = [message["role"] for message in outputs[0]["completion"]]
    assert roles == ["assistant", "tool", "assistant", "tool", "assistant"]


async def test_an_episode_that_cannot_be_judged_earns_the_failed_score_and_says_why(client: Any) -> None:
    outputs = (await played(client, raises))["outputs"]
    assert [output["reward"] for output in outputs] == [-1.0] * 4
    assert all("could not be judged" in str(output["error"]) for output in outputs)
