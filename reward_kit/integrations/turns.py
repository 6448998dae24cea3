# SPDX-License-Identifier: Apache-2.0
"""Prompts and completions as trainers give them, as the turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.errors import RewardError
from reward_kit.models import Message

__all__ = ["completion_turns", "prompt_turns"]


def prompt_turns(prompt: Any) -> list[Any]:
    """What was asked: a text is the user's turn, a list of messages (or one) is taken as it is."""
    return _turns(prompt, "user")


def completion_turns(completion: Any) -> list[Any]:
    """What was answered. A text, also an empty one, is the assistant's turn; nothing at all is a `RewardError`."""
    turns = _turns(completion, "assistant")
    if not turns:
        raise RewardError("The completion is an empty list: there is no turn to judge. Check what the trainer keeps.")
    return turns


def _turns(value: Any, role: str) -> list[Any]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if type(value) is not list:  # asked first because the others are slow to tell
        value = _listed(value, role)
    return [
        turn.copy() if type(turn) is dict and "tool_calls" not in turn else _with_json_arguments(turn) for turn in value
    ]


def _listed(value: Any, role: str) -> Sequence[Any]:
    if isinstance(value, (Message, Mapping)):
        return [value]
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise RewardError(f"A {role}'s turn is {value!r}; expected a text or a list of messages. Correct the dataset.")
    return value


def _with_json_arguments(turn: Any) -> Any:
    """A copy of the turn with its tool calls' arguments as JSON text; TRL keeps them parsed."""
    calls = turn.get("tool_calls") if isinstance(turn, Mapping) else None
    if not calls:
        return turn
    return {**turn, "tool_calls": [_call_with_json_arguments(call) for call in calls]}


def _call_with_json_arguments(call: Any) -> Any:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or isinstance(function.get("arguments", ""), str):
        return call
    return {**call, "function": {**function, "arguments": json.dumps(function["arguments"], default=str)}}
