"""The model and the rewards of the golden runs. Their source is part of what the runs are bound to: leave it alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from reward_kit.models import (
    ChatCompletionMessageToolCall,
    EvaluateResult,
    FunctionCall,
    Message,
    MetricResult,
    StepOutput,
)


def answer(messages: Sequence[Message], draw: int) -> Message | str:
    """Say what is asked for, in one of the ways that models have of saying it."""
    asked = messages[-1].text
    if "mute" in asked:
        raise RuntimeError("no answer to this one")
    if "look" in asked:
        call = FunctionCall(name="look_up", arguments=json.dumps({"word": "golden", "draw": draw}))
        calls = [ChatCompletionMessageToolCall(id=f"call-{draw}", function=call)]
        return Message(role="assistant", content="", tool_calls=calls)
    numbers = [int(number) for number in re.findall(r"\d+", asked)]
    total = sum(numbers) + (draw if "hard" in asked else 0)
    if draw % 2:
        return Message(role="assistant", content=f"It is {total} – “précisément”.", reasoning_content="I add them.")
    return f"<think>\nI add {numbers}.\n</think>\nIt is {total}."


def right(messages: list[Message], ground_truth: Any = None, **_: Any) -> EvaluateResult:
    """Whether the answer holds the number that is expected, with a part of the score for its form."""
    text = messages[-1].text
    if ground_truth == "unknown":
        raise ValueError("there is nothing to compare the answer with")
    score = float(bool(re.search(rf"\b{ground_truth}\b", text)))
    form = MetricResult(score=float(text.endswith(".")), is_score_valid=True, reason="a full stop")
    steps = [StepOutput(step_index=0, base_reward=score, metrics={"length": len(text)})] if "step" in text else None
    return EvaluateResult(score=score, reason=f"expected {ground_truth}", metrics={"form": form}, step_outputs=steps)


def called(messages: list[Message], **_: Any) -> float:
    """Whether a tool was called."""
    return float(bool(messages[-1].tool_calls))
