# SPDX-License-Identifier: Apache-2.0
"""A scripted agent in place of a model, so that the example runs without one. Every second draw is careless."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message


def answer(messages: Sequence[Message], draw: int) -> str | Message:
    """Look for the item, bring it from every shelf that has some, and say that it is done."""
    asked = re.search(r"(\d+) of '(\w+)'", next(message.text for message in messages if message.role == "user"))
    if asked is None:
        return "I do not know what to bring."
    amount, item = int(asked[1]), asked[2]
    if draw % 2 == 1:
        tried = any(message.role == "tool" for message in messages)
        return "I did my best." if tried else calling("bring", item=item, amount=amount, shelf="A")
    found = [message for message in messages if message.role == "tool" and message.name == "find"]
    if not found:
        return calling("find", item=item)
    shelves: dict[str, int] = json.loads(found[0].text)
    brought = sum(message.role == "tool" and message.name == "bring" for message in messages)
    for there in list(shelves.values())[:brought]:
        amount -= min(amount, there)
    rest = list(shelves.items())[brought:]
    if amount == 0 or not rest:
        return f"The desk has what you asked for of '{item}'."
    shelf, there = rest[0]
    return calling("bring", item=item, amount=min(amount, there), shelf=shelf)


def calling(name: str, **arguments: Any) -> Message:
    """A turn that calls one tool."""
    function = FunctionCall(name=name, arguments=json.dumps(arguments))
    call = ChatCompletionMessageToolCall(id="call", type="function", function=function)
    return Message(role="assistant", content=None, tool_calls=[call])
