# SPDX-License-Identifier: Apache-2.0
"""What trainers say to a reward over HTTP, and what they want to hear: a pure function for each dialect.

    dialect     request                                                         response
    openrlhf    {"query": [...], "prompts": [...], "labels": [...]}             {"rewards", "scores", "extra_logs"}
    slime       {"prompt", "response", "label"}                                 a number
    nemo-gym    {"responses_create_params", "response", **row}                  the same with "reward" and its parts

A server gives each a route, hands over the decoded JSON, and sends back what is returned. A request of another shape is
a `ValueError` (status 400); a completion that cannot be judged earns `failed_score`, or is a `RewardError` (500).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.integrations import openrlhf
from reward_kit.integrations.trainer_reward import TrainerReward
from reward_kit.integrations.turns import prompt_turns

__all__ = ["DIALECTS", "Dialect"]

Dialect = Callable[[TrainerReward, Mapping[str, Any]], Any]
"""The response of a reward to one request."""


def _needs(request: Mapping[str, Any], *names: str) -> None:
    if not isinstance(request, Mapping):
        raise ValueError(f"The request is {request!r}; expected a JSON object with {', '.join(names)}.")
    if missing := [name for name in names if name not in request]:
        raise ValueError(f"The request has no {missing[0]!r}; there are {sorted(request)}. Send {', '.join(names)}.")


def _openrlhf(judge: TrainerReward, request: Mapping[str, Any]) -> dict[str, Any]:
    _needs(request, "query")
    return openrlhf.answer(judge, request)


def _slime(judge: TrainerReward, request: Mapping[str, Any]) -> float:
    _needs(request, "prompt", "response")
    messages = [*prompt_turns(request["prompt"]), {"role": "assistant", "content": request["response"]}]
    (earned,) = judge.judge([judge.payload(messages, request.get("label"), {})])
    return earned.score


def _nemo_gym(judge: TrainerReward, request: Mapping[str, Any]) -> dict[str, Any]:
    _needs(request, "response")
    prompt = (request.get("responses_create_params") or {}).get("input", [])
    answer = {"role": "assistant", "content": _output_text(request["response"])}
    columns = {name: value for name, value in request.items() if name not in {"responses_create_params", "response"}}
    truth = columns.pop("ground_truth", None)
    messages = [*(_spoken(turn) for turn in prompt_turns(prompt)), answer]
    (earned,) = judge.judge([judge.payload(messages, truth, columns)])
    return {**request, "reward": earned.score, "reward_components": dict(earned.metrics)}


def _output_text(response: Mapping[str, Any]) -> str:
    """The last text of a Responses object."""
    texts = [
        part["text"]
        for item in response.get("output", [])
        if item.get("type", "message") == "message"
        for part in item.get("content", [])
        if part.get("type") == "output_text"
    ]
    return str(texts[-1]) if texts else ""


def _spoken(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn of the Responses API as a message: its text parts have a type of their own there."""
    content = turn.get("content", "")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content)
    return {"role": turn.get("role", "user"), "content": content}


DIALECTS: Mapping[str, Dialect] = {"openrlhf": _openrlhf, "slime": _slime, "nemo-gym": _nemo_gym}
"""The dialects that are spoken, by name."""
