# SPDX-License-Identifier: Apache-2.0
"""A reward in verifiers environments: 0.4's `@vf.reward`, and the functions of a `Rubric` before it. Not imported.

    class Sums(vf.Task[SumsData]):                      # verifiers 0.4
        correct = task_reward("my_rewards:correct", ground_truth="answer")

    rubric = vf.Rubric(funcs=[rubric_reward("my_rewards:correct")])     # before

A completion that cannot be judged is an error to verifiers, which records it on the trace as unscored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reward_kit.integrations.attempts import attempt, attempt_of_turns, known_to
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.turns import completion_turns, prompt_turns

__all__ = ["RubricReward", "TaskReward", "rubric_reward", "task_reward"]

_RUBRIC_NAMES = frozenset({"prompt", "completion", "answer", "state", "parser", "task"})


def task_reward(
    reward: Callable[..., Any] | str,
    *,
    ground_truth: str = "answer",
    weight: float = 1.0,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> TaskReward:
    """A reward to be named in the body of a `vf.Task` (verifiers 0.4), or in its config as `task.rewards.NAME.fn`.

    The field of the task's data called `ground_truth` is the right answer; every other field reaches the reward by
    name. The options are those of `Scoring`.
    """
    judge = TrainerReward(reward, failed_score=None, params=params, **options)
    return TaskReward(judge, ground_truth, weight, name or judge.call.name)


class TaskReward:
    """What verifiers 0.4 calls with the task's data and the trace of a rollout."""

    reward = True
    """The mark by which verifiers finds it."""
    reward_priority = 0

    def __init__(self, judge: TrainerReward, ground_truth: str, weight: float, name: str) -> None:
        self.__name__ = name
        self._vf_weight = weight
        self._judge = judge
        self._ground_truth = ground_truth

    async def __call__(self, task: Any, trace: Any) -> float:
        """The score of the conversation that the trace holds."""
        row = dict(task)  # a pydantic model gives its fields
        row["ground_truth"] = row.pop(self._ground_truth, None)
        messages = [_flat_tool_calls(message.model_dump(exclude_none=True)) for message in trace.messages]
        (earned,) = await self._judge.judge_async([attempt_of_turns(row, messages)])
        return earned.score


def rubric_reward(
    reward: Callable[..., Any] | str, *, params: Mapping[str, Any] | None = None, **options: Any
) -> RubricReward:
    """A reward function for a `Rubric` (verifiers before 0.4): `answer` is the ground truth, `info` gives columns."""
    return RubricReward(TrainerReward(reward, failed_score=None, params=params, **options))


class RubricReward:
    """What a `Rubric` calls with a prompt, a completion and an answer."""

    def __init__(self, judge: TrainerReward) -> None:
        self.__name__ = judge.call.name
        self._judge = judge

    async def __call__(self, prompt: Any, completion: Any, answer: Any = None, info: Any = None, **given: Any) -> float:
        """The score of one completion."""
        named = {name: value for name, value in given.items() if name not in _RUBRIC_NAMES}
        row, objects = known_to(self._judge.call, {**named, **(info if isinstance(info, Mapping) else {})})
        asked, said = _plain(prompt_turns(prompt)), _plain(completion_turns(completion))
        row |= {"prompt": prompt if isinstance(prompt, str) else asked, "ground_truth": answer}
        (earned,) = await self._judge.judge_async([attempt(row, asked, said, objects)])
        return earned.score


def _plain(turns: Sequence[Any]) -> list[Any]:
    """Turns as dicts; verifiers has models of its own for them."""
    return [
        _flat_tool_calls(turn.model_dump(exclude_none=True)) if hasattr(turn, "model_dump") else turn for turn in turns
    ]


def _flat_tool_calls(turn: dict[str, Any]) -> dict[str, Any]:
    """The turn with its tool calls in OpenAI's shape; verifiers keeps name and arguments beside the id."""
    calls = turn.get("tool_calls")
    if not calls:
        return turn
    nested = [call if "function" in call else {"id": call.get("id", ""), "function": _function(call)} for call in calls]
    return {**turn, "tool_calls": nested}


def _function(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": call["name"], "arguments": call["arguments"]}
