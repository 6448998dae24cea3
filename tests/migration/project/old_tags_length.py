# SPDX-License-Identifier: Apache-2.0
"""A reward that is put together from three of the library's."""

from typing import Any, List

from reward_kit import reward_function
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.format import format_reward
from reward_kit.rewards.length import length_reward
from reward_kit.rewards.math import math_reward


@reward_function
def judge(messages: List[Message], ground_truth: Any, **kwargs: Any) -> EvaluateResult:
    """Half for the number; a quarter each for the tags and for an answer of at most 40 words."""
    number = math_reward(messages=messages, ground_truth=ground_truth, **kwargs)
    tags = format_reward(messages=messages)
    brevity = length_reward(messages=messages, max_length=40)
    total = number["score"] / 2 + tags["score"] / 4 + brevity["score"] / 4
    return EvaluateResult(score=total, reason=f"{tags.reason} {brevity.reason}", metrics=dict(number.metrics.items()))
