# SPDX-License-Identifier: Apache-2.0
"""Rewards in verifiers, with stand-ins of its shapes; tests/frameworks has the real thing."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from reward_kit.errors import RewardError
from reward_kit.integrations.verifiers import rubric_reward, task_reward
from tests.integrations import trainer_rewards


class Data(BaseModel):
    """As `vf.TaskData`."""

    prompt: str
    answer: str
    bonus: float = 0.5


class Turn(BaseModel):
    """As verifiers' messages: flat tool calls."""

    role: str
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


def trace(*turns: Turn) -> Any:
    return SimpleNamespace(messages=list(turns))


async def test_a_reward_of_a_task() -> None:
    reward = task_reward(trainer_rewards.exact, weight=2.0, workers=0)
    assert list(inspect.signature(reward).parameters) == ["task", "trace"], "verifiers gives what is named"
    assert (reward.reward, reward._vf_weight, reward.__name__) == (True, 2.0, "exact")
    asked = Turn(role="user", content="2+2?")
    assert await reward(Data(prompt="2+2?", answer="4"), trace(asked, Turn(role="assistant", content="4"))) == 1.5


async def test_tool_calls_take_our_shape() -> None:
    reward = task_reward(trainer_rewards.last_turns, workers=0)
    call = {"id": "1", "type": "function", "name": "add", "arguments": '{"a": 1}'}
    assert await reward(Data(prompt="", answer=""), trace(Turn(role="assistant", tool_calls=[call]))) == 1.0


async def test_what_cannot_be_judged_is_an_error_to_verifiers() -> None:
    with pytest.raises(RewardError, match="as told"):
        await task_reward(trainer_rewards.perilous, workers=0)(
            Data(prompt="", answer=""), trace(Turn(role="assistant", content="raise"))
        )


async def test_a_function_of_a_rubric() -> None:
    reward = rubric_reward(trainer_rewards.exact, workers=0)
    assert reward.__name__ == "exact"
    given: dict[str, Any] = {"prompt": [{"role": "user", "content": "q"}], "answer": "a", "info": {"bonus": 1.0}}
    assert await reward(completion=[{"role": "assistant", "content": "a"}], state={}, parser=None, **given) == 2.0
    assert await reward(completion="b", **given) == 1.0
