# SPDX-License-Identifier: Apache-2.0
"""An older reward that is made of three others."""

from typing import Any, List

from reward_kit import reward_function
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.format import format_reward
from reward_kit.rewards.length import length_reward
from reward_kit.rewards.math import math_reward


@reward_function
def evaluate(messages: List[Message], ground_truth: Any, **kwargs: Any) -> EvaluateResult:
    """The mean of the number, the tags and the length."""
    number = math_reward(messages=messages, ground_truth=ground_truth, **kwargs)
    tags = format_reward(messages=messages)
    length = length_reward(messages=messages, max_length=50)
    parts = {"accuracy_reward": number, "format_reward": tags, "length_reward": length}
    metrics = {name: {"score": part.score, "reason": part.reason or ""} for name, part in parts.items()}
    score = sum(part["score"] for part in parts.values()) / len(parts)
    return EvaluateResult.model_validate({"score": score, "reason": "the mean of three", "metrics": metrics})
