# SPDX-License-Identifier: Apache-2.0
"""Rewards for the tests of trainers' adapters, in a module that worker processes can import."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function
from reward_kit.errors import MissingExtraError


@reward_function
def exact(messages: list[Message], ground_truth: Any = None, bonus: float = 0.0, **kwargs: Any) -> EvaluateResult:
    """Right or wrong, with a reason and a metric."""
    right = float(messages[-1].text == ground_truth)
    metrics = {"length": MetricResult(score=min(1.0, len(messages[-1].text) / 10), reason="counted")}
    return EvaluateResult(score=right + bonus, reason=f"{messages[-1].text!r} for {ground_truth!r}", metrics=metrics)


@reward_function
async def exact_async(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """The same, to be awaited."""
    return exact(messages=messages, ground_truth=ground_truth)


@reward_function(mode="batch")
def best(rollouts_messages: list[list[Message]], ground_truth: Any = None, **kwargs: Any) -> list[EvaluateResult]:
    """The longest answer of the group gets a point; the reason says who was in the group."""
    texts = [messages[-1].text for messages in rollouts_messages]
    if "boom" in texts:
        raise ValueError("no group with a boom")
    longest = max(map(len, texts))
    return [
        EvaluateResult(score=float(len(text) == longest), reason=f"{ground_truth}: {' '.join(texts)}",
                       is_score_valid=text != "unsure")
        for text in texts
    ]  # fmt: skip


@reward_function(timeout=1.0)
def perilous(messages: list[Message], **kwargs: Any) -> Any:
    """Does what the answer says."""
    match messages[-1].text:
        case "raise":
            raise RuntimeError("as told")
        case "hang":
            time.sleep(600)
        case "regex":
            return float(bool(re.match(r"(a+)+$", "a" * 40 + "!")))
        case "exit":
            os._exit(3)
        case "none":
            return None
        case "nan":
            return float("nan")
        case "infinity":
            return float("inf")
        case "unsure":
            return EvaluateResult(score=1.0, is_score_valid=False, reason="could not tell")
        case "extra":
            raise MissingExtraError("This", "math")
    return 1.0


@reward_function
def last_turns(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """Says what it saw."""
    calls = [call.function.arguments for turn in messages for call in turn.tool_calls or []]
    return EvaluateResult(score=float(len(messages)), reason=f"{messages[-1].role} {messages[-1].text!r} {calls}")


@reward_function
def spender(messages: list[Message], hints: list[str], **kwargs: Any) -> float:
    """Uses up what it is handed."""
    return float(len([hints.pop() for _ in range(len(hints))]))


@reward_function
def watcher(messages: list[Message], log_metric: Any = None, trainer_state: Any = None, **kwargs: Any) -> float:
    """Speaks to the trainer itself."""
    log_metric("seen", 1.0)
    return float(trainer_state["step"])


@reward_function
def process(messages: list[Message], **kwargs: Any) -> float:
    """The number of the process it runs in."""
    return float(os.getpid())


@reward_function
async def slow_async(messages: list[Message], **kwargs: Any) -> float:
    """Never answers."""
    import asyncio

    await asyncio.sleep(600)
    return 1.0


def counts_up(seen: list[int]) -> float:
    """Changes what it is handed, as it should not: 1.0 the first time."""
    seen.append(1)
    return float(len(seen))


@reward_function
def wrong_is_invalid(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """Marks a wrong answer as not valid, as rewards written for other versions do."""
    right = messages[-1].text == ground_truth
    return EvaluateResult(score=float(right), is_score_valid=right, reason="compared")
