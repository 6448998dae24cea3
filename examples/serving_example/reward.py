# SPDX-License-Identifier: Apache-2.0
"""The reward that is served: whether the last number of an answer is the right one."""

from __future__ import annotations

import re
from typing import Any

from reward_kit import EvaluateResult, Message, MetricResult, reward_function


@reward_function
def right_number(messages: list[Message], ground_truth: Any = None, **kwargs: Any) -> EvaluateResult:
    """1 if the last number is the ground truth, else 0. Without a number there is no verdict."""
    numbers = re.findall(r"-?\d+", messages[-1].text)
    if not numbers:
        return EvaluateResult(score=0.0, is_score_valid=False, reason="there is no number in the answer")
    short = MetricResult(score=1.0 if len(messages[-1].text) < 40 else 0.0, reason="counted characters")
    return EvaluateResult(
        score=float(numbers[-1] == str(ground_truth)), reason=f"it says {numbers[-1]}", metrics={"short": short}
    )
