# SPDX-License-Identifier: Apache-2.0
"""The reward of `task.yaml`, and the scripted agent that plays it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit import EvaluateResult, Message, reward_function
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall


@reward_function
def cancelled(messages: list[Message], *, state: Any, task_achieved: bool, **kwargs: Any) -> EvaluateResult:
    """1.0 if the database is as the task asks; half of it if more than one call was made."""
    calls = [call for turn in state["successful_func_calls"] for call in turn]
    score = (1.0 if len(calls) == 1 else 0.5) if task_achieved else 0.0
    return EvaluateResult(score=score, reason=f"{len(calls)} calls")


def act(messages: Sequence[Message], draw: int) -> Message:
    """Cancel the purchase; the third episode looks at the database first."""
    done = sum(message.role == "assistant" for message in messages)
    looks = [_call("execute_sql", '{"query": "SELECT * FROM purchase"}', 0)] if draw % 3 == 2 else []
    script = [*looks, _call("cancel_purchase", '{"purchase_id": 7}', 1)]
    return script[done] if done < len(script) else Message(role="assistant", content="Purchase 7 is cancelled.")


def _call(name: str, arguments: str, number: int) -> Message:
    call = ChatCompletionMessageToolCall(id=f"call_{number}", function=FunctionCall(name=name, arguments=arguments))
    return Message(role="assistant", content="", tool_calls=[call])
