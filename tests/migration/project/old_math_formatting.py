# SPDX-License-Identifier: Apache-2.0
"""An older reward: typed with `List` and `Any`, and wrong answers are marked as not valid."""

import re
from typing import Any, Dict, List, Optional

from reward_kit import reward_function
from reward_kit.models import EvaluateResult, MetricResult
from reward_kit.rewards.math import math_reward


@reward_function
def evaluate(messages: List[Dict[str, Any]], ground_truth: Optional[str] = None, **kwargs: Any) -> EvaluateResult:
    """Half for the right number, half for the two tags."""
    text = messages[-1]["content"]
    accuracy = math_reward(messages=messages, ground_truth=ground_truth, **kwargs).score
    tagged = float(bool(re.fullmatch(r"<think>.*</think>\s*<answer>.*</answer>", text.strip(), re.DOTALL)))
    score = (accuracy + tagged) / 2
    return EvaluateResult(
        score=score,
        reason=f"accuracy {accuracy:g}, format {tagged:g}",
        is_score_valid=accuracy == 1.0,
        metrics={
            "accuracy_reward": MetricResult(score=accuracy, reason="the number", is_score_valid=accuracy == 1.0),
            "format_reward": MetricResult(score=tagged, reason="the tags", is_score_valid=tagged == 1.0),
        },
    )
