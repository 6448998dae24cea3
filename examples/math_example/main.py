# SPDX-License-Identifier: Apache-2.0
"""The reward of this example: is the answer right, and does it show the calculation?"""

from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards.math import math_reward
from reward_kit.typed_interface import reward_function


@reward_function
def evaluate(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    """1.0 for the right number. Showing the calculation is told beside it and earns nothing by itself."""
    result = math_reward(messages, ground_truth=ground_truth)
    shown = "=" in messages[-1].text
    result.metrics["shows_work"] = MetricResult(
        score=float(shown), is_score_valid=shown, reason="shows a calculation" if shown else "only states a result"
    )
    return result
