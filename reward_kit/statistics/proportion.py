"""Intervals for a proportion."""

from __future__ import annotations

from math import sqrt

from reward_kit.statistics.estimate import Interval
from reward_kit.statistics.quantiles import normal_quantile

__all__ = ["wilson_interval"]


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
