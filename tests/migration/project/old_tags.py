# SPDX-License-Identifier: Apache-2.0
"""A reward typed with `Dict`, `List` and `Optional` that says of a wrong answer that its score is not valid."""

from typing import Any, Dict, List, Optional

from reward_kit import reward_function
from reward_kit.models import EvaluateResult, MetricResult
from reward_kit.rewards.math import math_reward

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


@reward_function
def judge(messages: List[Dict[str, Any]], ground_truth: Optional[str] = None, **kwargs: Any) -> EvaluateResult:
    """Eight tenths for the number, two for the tags."""
    right = math_reward(messages=messages, ground_truth=ground_truth, **kwargs).score == 1.0
    present = sum(tag in messages[-1]["content"] for tag in TAGS)
    tags = MetricResult(score=present / len(TAGS), reason=f"{present} of {len(TAGS)} tags", is_score_valid=present > 0)
    return EvaluateResult(
        score=0.8 * right + 0.2 * tags.score,
        is_score_valid=right,
        metrics={"tags": tags},
        reason="the number is right" if right else "the number is wrong",
    )
