# SPDX-License-Identifier: Apache-2.0
"""Plays BFCL's own answers in the place of a model: at the first draw all of them, at the second only words."""

from __future__ import annotations

from collections.abc import Sequence

from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from tests.agent.environments.test_bfcl import gold_steps, tasks


def act(messages: Sequence[Message], draw: int) -> Message:
    """The next step of the gold answer to the task that the conversation begins with."""
    asked = next(message.text for message in messages if message.role == "user")
    task = next(name for name, row in tasks().items() if row["messages"][-1]["content"] == asked)
    steps = [step for turn in gold_steps(task) for step in turn]
    done = sum(message.role == "assistant" for message in messages)
    if draw == 1 or done >= len(steps) or not steps[done]:
        return Message(role="assistant", content="Done.")
    calls = [
        ChatCompletionMessageToolCall(
            id=f"call_{done}_{place}", function=FunctionCall(name=name, arguments=arguments)
        )
        for place, (name, arguments) in enumerate(steps[done])
    ]  # fmt: skip
    return Message(role="assistant", content=None, tool_calls=calls)
