# SPDX-License-Identifier: Apache-2.0
"""The stand-in for a model, as the clerk at the desk.

Even draws keep to the policy; odd ones reset every line and ask for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message


def answer(messages: Sequence[Message], draw: int) -> Message:
    """The next turn: a question to the customer, or a call of a tool."""
    calls = [call.function.name for message in messages for call in message.tool_calls or ()]
    results = {m.name: m.text for m in messages if m.role == "tool"}
    user = [message.text for message in messages if message.role == "user"]
    phone = next((found[0] for text in user if (found := re.search(r"\d{3}-\d{4}", text))), None)
    if phone is None:
        return Message(role="assistant", content="What is your phone number?")
    step = f"a{len(messages)}"
    if draw % 2:
        careless = "reset_line" not in calls
        return _calls("reset_line", step, phone=phone) if careless else _text("I cannot help any further. Goodbye.")
    for name in ("find_customer", "line_status"):
        if name not in calls:
            return _calls(name, step, phone=phone)
    if due := re.search(r'"due":\s*([1-9][\d.]*)', results["find_customer"]):
        return _text(f"Your line is suspended: {float(due[1]):.2f} must be paid first.")
    return _repair(results, calls, user, phone, step)


def _repair(results: dict[str | None, str], calls: list[str], user: list[str], phone: str, step: str) -> Message:
    if results["line_status"] == "down" and "reset_line" not in calls:
        return _calls("reset_line", step, phone=phone)
    light = next((found[1] for text in reversed(user) if (found := re.search(r"light is (\w+)", text))), None)
    restarts = sum("light is red" in text for text in user)
    if "book_visit" in calls:
        return _text("A visit is booked. Goodbye.")
    if day := re.search(r"(\w+day), please", user[-1]):
        return _calls("book_visit", step, phone=phone, day=day[1])
    if light == "off":
        return _text("Please plug the router in.")
    if restarts > 1:
        return _text("I send somebody. Which day suits you?")
    return _text(
        "Please restart the router." if light == "red" or "reset_line" in calls else "What colour is the light?"
    )


def _text(text: str) -> Message:
    return Message(role="assistant", content=text)


def _calls(name: str, step: str, **arguments: Any) -> Message:
    function = FunctionCall(name=name, arguments=json.dumps(arguments))
    call = ChatCompletionMessageToolCall(id=step, function=function)
    return Message(role="assistant", content=None, tool_calls=[call])
