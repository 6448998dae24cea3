# SPDX-License-Identifier: Apache-2.0
"""Two systems on the same samples: tests and intervals for their difference."""

from __future__ import annotations

from math import comb, sqrt
from typing import NamedTuple

from reward_kit.statistics.quantiles import student_t_quantile, student_t_tail

__all__ = ["McNemar", "PairedDifference", "mcnemar", "paired_difference"]

_EXACT = 1_000
"""Up to so many disagreements the binomial distribution is summed; beyond, the normal one is as good."""
_IMAGINED = 1.75
"""So many imagined samples, half of them won and half lost, are counted among the real ones."""
_WHOLE = 0.02
"""How much the belief that a difference is by a whole answer weighs, against a whole answer that was seen to differ."""


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


class PairedDifference(NamedTuple):
    """The mean of the samples' differences, with an interval and a test that always agree."""

    value: float
    low: float
    """The 95 % interval leaves out zero exactly when p is below 0.05."""
    high: float
    p: float
    """How likely a mean so far from zero is when neither system is better."""


def paired_difference(total: float, squares: float, *, samples: int, absolute: float) -> PairedDifference:
    """Student's interval and test for the mean of differences in [-1, 1].

    They are given by their sum, their sum of squares, and the sum of their absolute values. A few imagined samples, won
    and lost alike, are counted among them: without these, a handful of samples on which nothing differs would say
    "certainly no difference". They differ by as much as samples usually do where they differ, and by a whole answer
    where none does. Small differences are those of many answers per sample, of which a few samples tell enough: the
    imagined ones count the less, the smaller they are.
    """
    if samples < 1:
        raise ValueError(f"{samples!r} samples cannot be compared; give at least one")
    size = (squares + _WHOLE) / (absolute + _WHOLE)
    count = samples + _IMAGINED
    centre = total / count
    variance = max(0.0, (squares + _IMAGINED * size**3) / count - centre * centre)
    error = sqrt(variance / (count - 1))
    reach = student_t_quantile(0.975, samples) * error
    mean = total / samples
    # The imagined samples draw the centre towards zero; the interval is stretched to hold the mean, away from zero.
    low, high = max(-1.0, min(mean, centre - reach)), min(1.0, max(mean, centre + reach))
    return PairedDifference(mean, low, high, min(1.0, 2 * student_t_tail(abs(centre) / error, samples)))
