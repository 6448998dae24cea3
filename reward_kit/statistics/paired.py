"""Two systems on the same samples: tests and intervals for their difference."""

from __future__ import annotations

from math import comb, sqrt
from typing import NamedTuple

from reward_kit.statistics.estimate import Interval
from reward_kit.statistics.quantiles import normal_quantile

__all__ = ["McNemar", "doubt_about_differences", "mcnemar", "paired_difference_interval"]

_EXACT = 1_000
"""Up to so many disagreements the binomial distribution is summed; beyond, the normal one is as good."""


class McNemar(NamedTuple):
    """Whether the samples that only one system got right are more often the one's than the other's."""

    won: int
    """Samples that only the second system got right."""
    lost: int
    """Samples that only the first one got right."""
    exact_p: float
    """How likely so uneven a count is when neither is better: a two-sided binomial test."""
    mid_p: float
    """The same without the test's excess of caution: half of the observed count's own chance is taken off."""


def mcnemar(won: int, lost: int) -> McNemar:
    """McNemar's test on the samples that the two systems disagree on."""
    if won < 0 or lost < 0:
        raise ValueError(f"{won!r} won and {lost!r} lost; counts cannot be negative")
    count, fewer = won + lost, min(won, lost)
    if count > _EXACT:
        return McNemar(won, lost, _normal_p(won, lost, 1), _normal_p(won, lost, 0))
    tail, point = sum(comb(count, i) for i in range(fewer + 1)) / 2**count, comb(count, fewer) / 2**count
    mid = 1.0 if won == lost else min(1.0, 2 * tail - point)
    return McNemar(won, lost, min(1.0, 2 * tail), mid)


def _normal_p(won: int, lost: int, correction: int) -> float:
    from statistics import NormalDist

    distance = max(0, abs(won - lost) - correction) / sqrt(won + lost)
    return 2 * NormalDist().cdf(-distance)


def doubt_about_differences(squares: float, differing: int) -> float:
    """How far apart two systems are on two imagined samples, one won and one lost, that an interval reckons with.

    As far as they usually are where they differ, from the sum of squared differences and how many are not zero; by a
    whole answer where they never did. With them no handful of samples says "certainly no difference". For single
    answers it is the interval of Bonett and Price (2012).
    """
    return sqrt((squares + 1) / (differing + 1))


def paired_difference_interval(total: float, squares: float, *, samples: int, differing: int) -> Interval:
    """The 95 % interval of the mean of differences in [-1, 1], from their sum and their sum of squares."""
    doubt = doubt_about_differences(squares, differing)
    count = samples + 2
    centre = total / count
    variance = max(0.0, (squares + 2 * doubt * doubt) / count - centre * centre)
    reach = normal_quantile(0.975) * sqrt(variance / count)
    mean = total / samples
    return Interval(max(-1.0, min(mean, centre - reach)), min(1.0, max(mean, centre + reach)))
