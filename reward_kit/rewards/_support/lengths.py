"""Scores that depend on length: along a cosine, and as a metric within [0, 1] whatever range they are in."""

from __future__ import annotations

import math

from reward_kit.rewards._support.parameters import number, whole

__all__ = ["cosine_between", "within_unit"]


def cosine_between(tokens: int, max_length: int, right: bool, values: tuple[float, float, float, float]) -> float:
    """A right answer's score falls with length, a wrong one's rises, along half a cosine that ends at `max_length`.

    `values` are the least and the most for a wrong answer, then the same for a right one.
    """
    whole("max_length", max_length, at_least=1)
    min_wrong, max_wrong, min_right, max_right = values
    number("min_value_wrong", min_wrong)
    number("max_value_wrong", max_wrong)
    number("min_value_correct", min_right)
    number("max_value_correct", max_right)
    at_nothing, at_most = (max_right, min_right) if right else (min_wrong, max_wrong)
    progress = min(1.0, tokens / max_length)
    return at_most + (at_nothing - at_most) * (1.0 + math.cos(progress * math.pi)) / 2.0


def within_unit(score: float, low: float, high: float) -> float:
    """`score` as a metric: itself where its range is within [0, 1], else where it stands in its range."""
    if low < 0.0 or high > 1.0:
        score = (score - low) / (high - low) if high > low else 1.0
    return max(0.0, min(1.0, score))
