# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model. It makes the right calls in its first answer; later ones have a typical mistake each."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

_ROWS = map(json.loads, (Path(__file__).parent / "dataset.jsonl").read_text().splitlines())
_CALLS: dict[str, list[dict[str, Any]]] = {row["user_query"]: row["ground_truth"] for row in _ROWS}


def answer(messages: Sequence[Message], draw: int) -> Message:
    """The calls of this draw: the right ones; a number as text; a call where none is needed, or one too few."""
    calls = [{**call, "arguments": dict(call["arguments"])} for call in _CALLS.get(messages[-1].text, [])]
    if draw % 3 == 1:
        for call in calls:
            call["arguments"] = {name: str(value) for name, value in call["arguments"].items()}
    if draw % 3 == 2:
        calls = calls[:-1] if calls else [{"name": "search", "arguments": {"words": ["thanks"]}}]
    made = [
        ChatCompletionMessageToolCall(
            id=f"call_{number}", function=FunctionCall(name=call["name"], arguments=json.dumps(call["arguments"]))
        )
        for number, call in enumerate(calls)
    ]
    return Message(role="assistant", content=None if made else "You are welcome!", tool_calls=made or None)
