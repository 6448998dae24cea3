# SPDX-License-Identifier: Apache-2.0
"""Episodes with a policy that is not a run's model, and the policy that is a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reward_kit.agent.policies.openai_policy import OpenAIPolicy
from reward_kit.agent.policy_interface import AgentPolicy, PolicyAction
from reward_kit.agent.rl_rollout_worker import PolicyFailure, RLRolloutWorker
from reward_kit.errors import EnvironmentFailure
from reward_kit.models import (
    ChatCompletionMessageToolCall,
    Completion,
    FunctionCall,
    Message,
    TaskDefinitionModel,
    Tokens,
)


class Script(AgentPolicy):
    """Does what it is told, and remembers what it was shown."""

    def __init__(self, *actions: Any) -> None:
        self.actions = list(actions)
        self.seen: list[Mapping[str, Any]] = []
        self.tools: list[list[str]] = []

    async def get_action(
        self, observation: Mapping[str, Any], available_tools_specs: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[dict[str, Any], str | None, Any, float | None]:
        self.seen.append(observation)
        self.tools.append([spec["function"]["name"] for spec in available_tools_specs or []])
        action = self.actions[len(self.seen) - 1]
        if isinstance(action, Exception):
            raise action
        return action, f"raw {len(self.seen)}", [-0.1], 0.5


def task(**more: Any) -> TaskDefinitionModel:
    base = {
        "name": "t",
        "resource_type": "PythonStateResource",
        "base_resource_config": {"initial_state": {"n": 1}},
        "reward_function_path": "x:y",
        "initial_user_prompt": "Go.",
        "evaluation_criteria": {"ground_truth_function_calls": [["get_value('n')"]]},
    }
    return TaskDefinitionModel.model_validate({**base, **more})


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments}


TEXT = {"type": "text", "content": "All is done."}
UPDATE = tool("update_state", updates={"n": 2})


async def test_an_episode_comes_back_as_steps_messages_and_ground_truth() -> None:
    policy = Script(UPDATE, tool("fly"), TEXT)
    steps, messages, truth = await RLRolloutWorker(task(), policy, 10).run_episode()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert truth == {"function_calls": [["get_value('n')"]], "comparable_state": None}
    assert [step.step_info["assistant_turn_index"] for step in steps] == [0, 1, 2]
    assert [step.is_done for step in steps] == [False, False, True]
    assert [step.observation_data["state"]["n"] for step in steps] == [1, 2, 2]
    assert [len(step.resulting_messages_history) for step in steps] == [3, 5, 6]
    assert steps[1].step_info["calls"][0]["error"] == "unknown_tool"
    assert steps[0].policy_logprobs == [-0.1] and steps[0].policy_value_estimate == 0.5
    assert steps[0].action_taken == UPDATE and steps[0].raw_policy_output == "raw 1"
    assert steps[-1].step_info["terminated_by"] == "answered"
    assert policy.tools[0] == ["update_state", "get_value"]


@pytest.mark.parametrize(
    ("actions", "limit", "more", "why"),
    [
        ([UPDATE, {"type": "terminate"}], 10, {}, "terminate"),
        ([UPDATE] * 5, 3, {}, "max_steps"),
        ([{**UPDATE, "content": "I am FINISHED now"}, UPDATE], 10, {"termination_regex": "FINISHED"}, "regex"),
        ([UPDATE, OSError("the policy died")], 10, {}, "error"),
        ([UPDATE, {"type": "dance"}], 10, {}, "error"),
    ],
)
async def test_why_an_episode_ends(actions: list[Any], limit: int, more: dict[str, Any], why: str) -> None:
    steps, _, _ = await RLRolloutWorker(task(**more), Script(*actions), limit).run_episode()
    assert steps[-1].step_info["terminated_by"] == why and steps[-1].is_done
    assert not any(step.is_done for step in steps[:-1])
    assert ("error" in steps[-1].step_info) == (why == "error")


async def test_what_fails_before_the_first_step_is_raised() -> None:
    with pytest.raises(PolicyFailure, match="died"):
        await RLRolloutWorker(task(), Script(OSError("died")), 10).run_episode()
    with pytest.raises(EnvironmentFailure, match="initial_state"):
        await RLRolloutWorker(task(base_resource_config={"initial_state": 3}), Script(TEXT), 10).run_episode()
    with pytest.raises(ValueError, match="max_episode_steps"):
        RLRolloutWorker(task(), Script(), 0)


class Model:
    """A client that gives one answer, and remembers how it was asked."""

    model = "m"

    def __init__(self, message: Message, tokens: Tokens | None = None) -> None:
        self.answer = Completion(message=message, tokens=tokens)
        self.asked: list[dict[str, Any]] = []

    async def generate(self, messages: Any, **asked: Any) -> list[Completion]:
        self.asked.append({"messages": messages, **asked})
        return [self.answer]

    async def close(self) -> None:
        pass


def call(name: str, arguments: str) -> ChatCompletionMessageToolCall:
    return ChatCompletionMessageToolCall(id=name, function=FunctionCall(name=name, arguments=arguments))


async def test_a_model_is_a_policy_that_tells_log_probabilities() -> None:
    model: Any = Model(Message(role="assistant", content="hi"), Tokens(logprobs=[-1.0, -2.0]))
    action = await OpenAIPolicy("m", client=model).get_action({"messages": [{"role": "user", "content": "x"}]}, [])
    assert action == PolicyAction({"type": "text", "content": "hi"}, action.raw_output, [-1.0, -2.0], None)
    assert model.asked[0]["sampling"].extra_body == {"logprobs": True}
    several = Message(role="assistant", content="", tool_calls=[call("a", '{"x": 1}'), call("b", "{")])
    model = Model(several)
    policy = OpenAIPolicy("m", client=model, logprobs=False)
    spec = {"type": "function", "function": {"name": "a"}}
    found = await policy.get_action({"messages": [{"role": "user", "content": "x"}]}, [spec])
    assert found.action_structured["name"] == "a" and found.action_structured["further_calls"][0]["arguments"] == "{"
    assert model.asked[0]["tools"] == [spec] and model.asked[0]["sampling"].extra_body == {}
    steps, _, _ = await RLRolloutWorker(task(), OpenAIPolicy("m", client=model), 1).run_episode()
    assert [one["error"] for one in steps[0].step_info["calls"]] == ["unknown_tool", "unknown_tool"]
    await policy.close()


async def test_the_mock_model_plays_a_task_through_the_policy() -> None:
    policy = OpenAIPolicy("mock", mock={"responses": ["It is done."]})
    steps, messages, _ = await RLRolloutWorker(task(), policy, 5).run_episode()
    assert messages[-1].text == "It is done." and steps[-1].step_info["terminated_by"] == "answered"
