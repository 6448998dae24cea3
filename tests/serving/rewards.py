# SPDX-License-Identifier: Apache-2.0
"""Rewards that the tests serve: good ones, and ones that do their worst."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.typed_interface import reward_function


@reward_function
async def equal(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """1 where the answer is the ground truth; waits or fails where the answer asks for it."""
    answer = messages[-1].text
    if answer.startswith("wait "):
        await asyncio.sleep(float(answer[5:]))
    if answer == "raise":
        raise ValueError("as asked")
    return EvaluateResult(score=float(answer == ground_truth), reason=f"{sorted(kwargs)}")


@reward_function
def worst(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """The same in workers, and what else the answer asks for."""
    answer = messages[-1].text
    if answer.startswith("wait "):
        time.sleep(float(answer[5:]))
    if answer == "hang":
        while True:
            pass
    if answer == "exit":
        os._exit(7)
    if answer == "abort":
        os.abort()
    if answer == "memory":
        held = []
        while True:
            held.append(bytearray(1 << 24))
    if answer == "rubbish":
        return "rubbish"  # type: ignore[return-value]
    if answer == "surrogate":
        return EvaluateResult(score=0.5, reason="half a character: \ud800")
    metrics = {"equal": MetricResult(score=1.0, reason="m")}
    return EvaluateResult(score=float(answer == ground_truth), reason="judged", metrics=metrics)


@reward_function(mode="batch")
def ranked(rollouts_messages: list[list[Message]], ground_truth: Any = None, **kwargs: Any) -> list[EvaluateResult]:
    """The longer the answer, the higher it ranks."""
    order = sorted(range(len(rollouts_messages)), key=lambda at: len(rollouts_messages[at][-1].text))
    return [EvaluateResult(score=float(order.index(at)), reason=f"of {len(order)}") for at in range(len(order))]
