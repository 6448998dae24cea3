# SPDX-License-Identifier: Apache-2.0
"""Our rewards in verifiers and SkyRL, and our worlds in SkyRL."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import skyrl_gym
import verifiers.v1 as vf
from verifiers.v1.errors import TaskError
from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage, UserMessage

from reward_kit.integrations.agent_environments import skyrl_text_env
from reward_kit.integrations.message_env import skyrl_environment
from reward_kit.integrations.verifiers import task_reward
from tests.agent.worlds import Account, Walk

MATH = "reward_kit.rewards.math:math_reward"


class SumsData(vf.TaskData):  # type: ignore[misc]  # verifiers has no types here
    answer: str
    level: str = "easy"


class Sums(vf.Task[SumsData]):  # type: ignore[misc]
    correct = task_reward(MATH, weight=2.0, name="correct", workers=0)


class Trace:
    """What `Task.score` needs of a trace: the conversation, and somewhere to write."""

    def __init__(self, answer: str) -> None:
        call = ToolCall(id="1", name="add", arguments='{"a": 2}')
        self.messages = [
            UserMessage(content="2 + 2?"), AssistantMessage(tool_calls=[call]),
            ToolMessage(tool_call_id="1", content="4"), AssistantMessage(content=answer),
        ]  # fmt: skip
        self.rewards: dict[str, Any] = {}
        self.metrics: dict[str, Any] = {}

    def record_reward(self, name: str, value: float, weight: float = 1.0) -> None:
        self.rewards[name] = (value, weight)


async def test_verifiers_scores_a_task_with_our_reward() -> None:
    for answer, score in (("4", 1.0), ("5", 0.0)):
        trace = Trace(answer)
        await Sums(SumsData(prompt="2 + 2?", answer="4")).score(trace)
        assert trace.rewards == {"correct": (score, 2.0)}


async def test_verifiers_leaves_unscored_what_cannot_be_judged() -> None:
    trace = Trace("4")
    with pytest.raises(TaskError, match="holds no answer"):
        await Sums(SumsData(prompt="2 + 2?", answer="")).score(trace)
    assert trace.rewards == {"correct": None}


def test_skyrl_makes_and_steps_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sums_env")
    module.SumsEnv = skyrl_environment(MATH, failed_score=0.0, workers=0)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sums_env", module)
    skyrl_gym.register(id="sums", entry_point="sums_env:SumsEnv")
    env = skyrl_gym.make("sums", env_config=None, extras={"reward_spec": {"ground_truth": "4"}, "level": "easy"})
    env.init([{"role": "user", "content": "2 + 2?"}])
    step = env.step("4")
    assert (step["reward"], step["done"]) == (1.0, True)
    assert env.get_metrics()["judged"] == 1.0


def saved(facts: dict[str, Any], ground_truth: int, **kwargs: Any) -> float:
    """1 where the account holds what was asked for."""
    return float(facts["balance"] == ground_truth)


def test_skyrl_plays_an_episode_in_our_world(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("savings_env")
    module.SavingsEnv = skyrl_text_env(Account, saved, failed_score=-1.0)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "savings_env", module)
    skyrl_gym.register(id="savings", entry_point="savings_env:SavingsEnv")
    env = skyrl_gym.make("savings", env_config=None, extras={"reward_spec": {"ground_truth": 7}})
    prompt = [{"role": "user", "content": "Save 7."}]
    assert env.init(prompt)[0] == prompt
    step = env.step('<tool_call>{"name": "deposit", "arguments": {"amount": 7}}</tool_call>')
    assert (step["observations"], step["done"]) == ([{"role": "tool", "content": "The balance is 7."}], False)
    step = env.step("Done.")
    assert (step["reward"], step["done"], step["metadata"]) == (1.0, True, {"ended": "answered"})
    env.close()


def test_skyrl_is_given_the_rewards_of_the_steps() -> None:
    env = skyrl_text_env(Walk, failed_score=-1.0)()
    prompt, _ = env.init([{"role": "user", "content": "Walk."}])
    assert [turn["content"] for turn in prompt] == ["Walk.", "You stand at 0."]
    steps = [env.step("right") for _ in range(5)]
    assert [(step["reward"], step["done"]) for step in steps] == [(float(n), n == 5) for n in range(1, 6)]
    env.close()
