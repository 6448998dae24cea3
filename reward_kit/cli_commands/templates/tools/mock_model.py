"""Stands in for a model: its first answer to each request is right, its second one is not."""

import json
from collections.abc import Sequence
from typing import Any

from reward_kit import Message
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall

ANSWERS: dict[str, list[list[tuple[str, dict[str, Any]]]]] = {
    "lamp": [[("switch", {"device": "lamp", "on": True})], [("switch", {"device": "lamp", "on": False})]],
    "warm": [[("read_temperature", {"room": "kitchen"})], [("switch", {"device": "heater", "on": True})]],
    "night": [
        [("switch", {"device": "heater", "on": False}), ("switch", {"device": "lamp", "on": False})],
        [("switch", {"device": "lamp", "on": False})],
    ],
    "thank": [[], [("switch", {"device": "lamp", "on": True})]],
}


def answer(messages: Sequence[Message], draw: int) -> Message:
    """The calls for the request that was made last."""
    asked = messages[-1].text
    calls = next(answers for word, answers in ANSWERS.items() if word in asked)[draw % 2]
    made = [
        ChatCompletionMessageToolCall(id=f"call_{n}", function=FunctionCall(name=name, arguments=json.dumps(arguments)))
        for n, (name, arguments) in enumerate(calls)
    ]
    return Message(role="assistant", content=None if made else "You are welcome.", tool_calls=made or None)
