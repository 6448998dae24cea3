# SPDX-License-Identifier: Apache-2.0
"""Intervals for a proportion: of independent trials, and of trials that come in clusters.

One rule serves every clustered proportion, from a single sample to a million, without a seam. It is the arcsine
interval (see `proportion_interval`), for as many independent trials as the answers are worth:

    trials = clusters / share ** belief        belief = m² / (m² + (7 share)² + 0.4)

`share` is how far the answers of one sample agree, read from the clustered standard error: 1 when a sample's answers
are all alike, so that each sample is one trial, and clusters / answers when they are as good as independent. It can
only be read off where both outcomes were seen, so it is believed the more, the larger `m` is: how many clusters showed
the rarer outcome. With none, each sample is one trial. Answers that look independent are believed sooner than answers
that look half alike, since a few samples of the latter say little about how far. `benchmarks/coverage.py` measures how
often these intervals hold the truth.
"""

from __future__ import annotations

from math import asin, inf, pi, sin, sqrt

from reward_kit.statistics.estimate import Interval
from reward_kit.statistics.quantiles import normal_quantile

__all__ = ["belief", "clustered_proportion_interval", "proportion_interval", "wilson_interval"]

_DOUBT = 7
"""So many clusters of alike answers must show the rarer outcome before that is half believed. Less, and rare outcomes
of alike answers are covered too seldom; more, and the intervals of independent answers are wider than they need be."""
_HARDLY_SHOWN = 0.4
"""Keeps belief small where hardly one cluster shows the rarer outcome: one pass, or a grade of 0.001 among zeros."""
_REACH = normal_quantile(0.975) / 2


def wilson_interval(successes: float, trials: float, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval: inside [0, 1], and never of zero width, even when every trial succeeded.

    `successes` need not be whole, so that a share of `trials` independent units can be given.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes!r} successes in {trials!r} trials; expected 0 to {trials!r} of them")
    if not trials:
        return Interval(0.0, 1.0)
    z = normal_quantile((1 + confidence) / 2)
    share, weight = successes / trials, z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    reach = sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    # The ends are exact there; computed, they miss by a rounding error.
    low = 0.0 if successes == 0 else max(0.0, centre - reach)
    high = 1.0 if successes == trials else min(1.0, centre + reach)
    return Interval(low, high)


def proportion_interval(share: float, trials: float) -> Interval:
    """The 95 % interval of a proportion, on the arcsine scale, with half a success and half a failure added.

    On that scale every proportion has the same spread, 1 / (2 sqrt(trials)), so that rare outcomes are covered like
    common ones. It lies inside [0, 1], holds `share`, and is never of zero width while `trials` is finite.
    """
    if not 0 <= share <= 1 or trials <= 0:
        raise ValueError(f"a share of {share!r} in {trials!r} trials; expected a share of 0 to 1 in more than 0 trials")
    if trials == inf:
        return Interval(share, share)
    middle, reach = asin(sqrt((share * trials + 0.5) / (trials + 1))), _REACH / sqrt(trials)
    low = sin(middle - reach) ** 2 if middle > reach else 0.0
    high = sin(middle + reach) ** 2 if middle + reach < pi / 2 else 1.0
    return Interval(min(low, share), max(high, share))


def clustered_proportion_interval(
    mean: float, standard_error: float, *, clusters: float, least_share: float, minority: float
) -> Interval:
    """The 95 % interval of a proportion (or a mean of values between 0 and 1) over answers that come in clusters.

    `standard_error` is the clustered one, infinite where there is one cluster. `clusters` are those of equal size that
    would be worth as much: (sum of sizes)² / sum of squared sizes. `least_share` is what a cluster's answers would
    share if they were independent: 1 / answers per cluster. `minority` counts the clusters that showed the rarer
    outcome.
    """
    share = 1.0
    if 0 < mean < 1 and standard_error < inf:
        seen = standard_error**2 * clusters / (mean * (1 - mean))
        share = min(1.0, max(least_share, seen))
    if not share:  # graded values that are all the same
        return Interval(mean, mean)
    return proportion_interval(mean, clusters / share ** belief(share, minority))


def belief(share: float, showing: float) -> float:
    """How far, from 0 to 1, it is believed that answers agree to this share, when so many clusters showed it."""
    return showing**2 / (showing**2 + (_DOUBT * share) ** 2 + _HARDLY_SHOWN)
