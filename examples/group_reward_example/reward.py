# SPDX-License-Identifier: Apache-2.0
"""The reward of this example: right answers share what they have in common. It sees all answers to a prompt at once."""

import re
from collections import Counter
from typing import Any

from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.rewards.math import answers_match
from reward_kit.typed_interface import reward_function

_EXPRESSION = re.compile(r"\d+( ?[+*] ?\d+)+")


@reward_function(mode="batch")
def varied(rollouts_messages: list[list[Message]], ground_truth: str, **kwargs: Any) -> list[EvaluateResult]:
    """1.0 for a right expression that no other answer gives; where k answers give it, 1/k for each; 0.0 if it is wrong.

    A reward that looks at one answer alone would teach a model to say the same thing always.
    """
    written = ["".join(messages[-1].text.split()) for messages in rollouts_messages]
    counts = Counter(written)
    return [_judged(text, ground_truth, counts[text]) for text in written]


def _judged(text: str, target: str, same: int) -> EvaluateResult:
    right = _EXPRESSION.fullmatch(text) is not None and answers_match(text, target) is True
    said = "is right" if right else f"is no expression with the value {target}"
    return EvaluateResult(
        score=right / same,
        reason=f"{text!r} {said}; given by {same} of the answers.",
        metrics={
            "right": MetricResult(score=float(right), is_score_valid=right, reason=said),
            "only_one": MetricResult(score=float(same == 1), is_score_valid=same == 1, reason=f"given {same} times"),
        },
    )
