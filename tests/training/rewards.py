# SPDX-License-Identifier: Apache-2.0
"""Rewards for the trainers' tests, in a module of their own so that every process can import them."""

from __future__ import annotations

import time
from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function


@reward_function
def digits(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """The share of digits in the answer."""
    text = messages[-1].text
    share = sum(character.isdigit() for character in text) / max(1, len(text))
    metrics = {"nonempty": MetricResult(score=float(bool(text)), reason="counted")}
    return EvaluateResult(score=share, reason=f"{share:.0%} digits", metrics=metrics)


@reward_function
async def digits_async(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    """The same, to be awaited."""
    return digits(messages=messages)


@reward_function(mode="batch")
def ranks(rollouts_messages: list[list[Message]], **kwargs: Any) -> list[EvaluateResult]:
    """The rank of each answer by its digits, within the group."""
    shares = [digits(messages=messages).score for messages in rollouts_messages]
    best = max(shares)
    return [EvaluateResult(score=float(share == best), reason=f"of {len(shares)}") for share in shares]


@reward_function(timeout=0.5)
def treacherous(messages: list[Message], **kwargs: Any) -> float:
    """Raises, hangs, or judges, by the length of what was said."""
    text = messages[-1].text
    if len(text) % 3 == 0:
        raise ValueError("no multiple of three")
    if text.startswith("7"):
        time.sleep(600)
    return float(len(text))
