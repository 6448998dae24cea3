# SPDX-License-Identifier: Apache-2.0
"""The reward of an inherited agent task, called as its author expects: with `state`, `task_achieved` and the rest.

What these hold comes from the rollout's facts, so an episode can be judged again from its file alone. `state` has
`successful_func_calls`, `comparable_state` and a `resource` that tells its final state and can do nothing more; a
reward that needs a live one names the parameter `world`, and finds it as `world.resource`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.errors import ConfigError
from reward_kit.models import EvaluateResult, Message, Rollout
from reward_kit.reward_call import MADE_WITH, RESOURCES, Arguments, RewardCall, run_blocking
from reward_kit.typed_interface import OPERATORS, Operator, reward_function

__all__ = ["RecordedResource", "task_reward"]


class RecordedResource:
    """The resource as it was when the episode ended, for rewards to look at."""

    def __init__(self, state: Any) -> None:
        """Take what the resource said of itself."""
        self._state = state

    def get_comparable_state(self) -> Any:
        """The final state."""
        return copy.deepcopy(self._state)

    def get_state(self) -> Any:
        """The final state."""
        return copy.deepcopy(self._state)


@reward_function
def task_reward(
    messages: list[Message], ground_truth: Any = None, *, reward: Operator[str], facts: Any = None, **kwargs: Any
) -> EvaluateResult:
    """The verdict of a task's own reward. `reward` is its import path; `facts` are what its world said in the end."""
    made = _made_with({"reward": reward})
    result = made(messages=messages, ground_truth=ground_truth, facts=facts, **kwargs)
    found: EvaluateResult = run_blocking(result) if inspect.iscoroutine(result) else result
    return found


def _made_with(params: Mapping[str, Any]) -> Callable[..., Any]:
    """The reward that is named in the params, ready to be given a rollout of a task."""
    try:
        call = RewardCall(params["reward"], params.get("params"))
    except ImportError as error:
        raise ConfigError(f"The task's reward cannot be loaded: {error}") from error
    if call.mode == "batch":
        raise ConfigError(f"The task's reward {call.name!r} judges in batches. Give one that judges one episode.")
    name, function = params.get("task"), call.func  # the function stands here for the digest of the whole to see it
    made = _asynchronous(call, name, function) if call.is_async else _synchronous(call, name, function)
    made.__signature__ = _signature(call)
    whole: Callable[..., Any] = reward_function(made, id="task_reward", timeout=call.timeout)
    return whole


def _synchronous(call: RewardCall, name: Any, function: Callable[..., Any]) -> Any:
    def task_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
        _ = function
        return call.judge(_arguments(call, name, messages, ground_truth, kwargs), _resources(kwargs))

    return task_reward


def _asynchronous(call: RewardCall, name: Any, function: Callable[..., Any]) -> Any:
    async def task_reward(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
        _ = function
        return await call.judge_async(_arguments(call, name, messages, ground_truth, kwargs), _resources(kwargs))

    return task_reward


def _arguments(
    call: RewardCall, name: Any, messages: list[Message], ground_truth: Any, given: Mapping[str, Any]
) -> Arguments:
    rollout: Rollout | None = given.get("rollout")
    if rollout is None:  # called by hand
        columns = {key: value for key, value in given.items() if key not in {*RESOURCES, "facts", "rollout"}}
        rollout = Rollout.of_conversation(messages, ground_truth, columns)
        rollout = rollout.model_copy(update={"facts": given.get("facts")})
    facts = rollout.facts or {}
    state = {
        "resource": RecordedResource(facts.get("state")),
        "comparable_state": facts.get("state"),
        "successful_func_calls": facts.get("successful_func_calls", []),
    }
    told = {"state": state, "task_achieved": bool(facts.get("task_achieved")), "task_definition_name": name}
    sample = rollout.sample.model_copy(update={"columns": {**rollout.sample.columns, **told}})
    return call.arguments_of([rollout.model_copy(update={"sample": sample})])


def _resources(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in RESOURCES and value is not None}


def _signature(call: RewardCall) -> inspect.Signature:
    """What the whole asks for: the rollout, the resources of the task's reward, and what no column of it may fill."""
    kind = inspect.Parameter.KEYWORD_ONLY
    names = {"rollout", *(name for name in RESOURCES if call.wants(name))} - call.operators
    asked = [inspect.Parameter(name, kind, default=None) for name in sorted(names)]
    asked += [inspect.Parameter(n, kind, default=None, annotation=OPERATORS) for n in sorted(call.operators)]
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [
        inspect.Parameter("messages", either, annotation=list[Message]),
        inspect.Parameter("ground_truth", either, default=None),
    ]
    return inspect.Signature([*first, *asked, inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])


setattr(task_reward, MADE_WITH, _made_with)
