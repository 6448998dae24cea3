# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the normal and of Student's t distribution."""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log
from statistics import NormalDist

__all__ = ["normal_quantile", "student_t_quantile", "student_t_tail"]

_NORMAL = NormalDist()
_HALF = 0.5
_PRECISION = 1e-15
"""A few rounding errors: asking for less may never be granted."""
_TINY = 1e-300
"""Stands in for a zero that would be divided by."""


def normal_quantile(probability: float) -> float:
    """The value a standard normal variable stays below with this probability."""
    return _NORMAL.inv_cdf(probability)


@lru_cache(maxsize=256)
def student_t_quantile(probability: float, degrees: int) -> float:
    """The value a t variable with so many degrees of freedom stays below with this probability."""
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(
            f"there is no t quantile for probability {probability!r} and {degrees!r} degrees of freedom; "
            "give a probability between 0 and 1, and at least one degree of freedom"
        )
    if probability < _HALF:
        return -_where_tail_is(probability, degrees)
    return _where_tail_is(1 - probability, degrees)


def _where_tail_is(tail: float, degrees: int) -> float:
    """Bisect for the t above which the probability `tail`, at most a half, lies."""
    low, high = 0.0, 1.0
    while student_t_tail(high, degrees) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if student_t_tail(middle, degrees) > tail else (low, middle)
    return low


def student_t_tail(value: float, degrees: int) -> float:
    """The probability that a t variable lies above a value that is not negative."""
    total = degrees + value * value
    return _incomplete_beta(degrees / 2, _HALF, degrees / total, value * value / total) / 2


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function at x, where y = 1 - x is given for its precision near x = 1."""
    if not x:
        return 0.0
    if not y:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction below converges fast only on this side
        return 1 - _incomplete_beta(b, a, y, x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y)) / a
    return front / _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    """1 + d1 x / (1 + d2 x / (1 + …)) of the incomplete beta function, evaluated from the front (Lentz's method)."""
    value = above = 1.0
    below, change, step = 0.0, 0.0, 0
    while abs(change - 1) > _PRECISION:
        step += 1
        half, odd = divmod(step, 2)
        if odd:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        below = 1 / (1 + term * below or _TINY)
        above = 1 + term / above or _TINY
        change = above * below
        value *= change
    return value
