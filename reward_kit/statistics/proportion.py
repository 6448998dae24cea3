"""Intervals for a proportion: of independent trials, and of trials that come in clusters.

One rule serves every clustered proportion, from a single sample to a million, without a seam. It is Wilson's interval,
for as many independent trials as the answers are worth:

    trials = clusters / share ** (m / (m + 2))

`share` is how far the answers of one sample agree, read from the clustered standard error: 1 when a sample's answers
are all alike, so that each sample is one trial, and clusters / answers when they are as good as independent. It can
only be read off where both outcomes were seen, so it is believed in proportion to `m`, the clusters in which the rarer
outcome occurred at all: with none, each sample is one trial.
"""

from __future__ import annotations

from math import inf, sqrt

from reward_kit.statistics.estimate import Interval
from reward_kit.statistics.quantiles import normal_quantile

__all__ = ["clustered_proportion_interval", "wilson_interval"]

_DOUBT = 2
"""So many clusters' worth of doubt that a sample's answers are independent. Less, and rare outcomes of alike answers
are covered too seldom; more, and the intervals of independent answers are wider than they need be."""


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


def clustered_proportion_interval(
    mean: float, standard_error: float, *, clusters: float, answers: float, minority: int
) -> Interval:
    """The 95 % interval of a proportion (or a mean of values between 0 and 1) over answers that come in clusters.

    `standard_error` is the clustered one, infinite where there is one cluster. `clusters` are those of equal size that
    would be worth as much: (sum of sizes)² / sum of squared sizes. `minority` counts the clusters in which the rarer
    outcome occurred.
    """
    share = 1.0
    if 0 < mean < 1 and standard_error < inf:
        independent = min(1.0, clusters / answers)
        share = min(1.0, max(independent, standard_error**2 * clusters / (mean * (1 - mean))))
    trials = clusters / share ** (minority / (minority + _DOUBT))
    return wilson_interval(mean * trials, trials)
