# SPDX-License-Identifier: Apache-2.0
"""Rates of a whole, from items that were chosen with unequal, known probabilities.

Items are drawn one after another, each from those that are left, and each draw may prefer some of them. An item that
was preferred stands for fewer of its kind, so it weighs less. `draw_weights` gives the weight of each draw: with M
draws out of N items, the m-th of them made with probability q from a pool of n_m items,

    w_m = 1 + (N - M) / (n_m - 1) x (1 / (n_m q) - 1)

It is 1 for every draw at random, and the weighted mean over all draws is unbiased whatever the draws prefer, as long as
every item had a chance at each draw (Farquhar, Gal and Rainforth, "On Statistical Bias in Active Learning", 2021).

Rates are ratios of weighted sums (Hájek's estimator). Their variance is that of the linearised ratio, summed over
clusters, because the answers to one sample are not independent. No correction is made for how much of the whole was
looked at: the intervals speak of the verifier, not only of the answers of this run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from math import atanh, fsum, sqrt, tanh
from typing import NamedTuple

from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.proportion import belief, proportion_interval
from reward_kit.statistics.quantiles import normal_quantile

__all__ = ["DrawnItem", "agreement_beyond_chance", "draw_weights", "weighted_rate"]

_IMAGINED = 0.5
"""Items that are imagined in each of the four cells of two judges, so that agreement on everything has an interval."""


class DrawnItem(NamedTuple):
    """An item that was drawn, and what two judges said of it."""

    cluster: Hashable
    """The sample it belongs to."""
    weight: float
    first: bool
    """What the first judge said."""
    second: bool
    """What the second judge said."""


def draw_weights(draws: Sequence[tuple[float, int]], population: int) -> list[float]:
    """The weight of each draw, given as its probability and the size of the pool that it was made from.

    >>> draw_weights([(0.25, 4), (1 / 3, 3)], population=4)
    [1.0, 1.0]
    """
    left = population - len(draws)
    weights = []
    for probability, pool in draws:
        if not 0 < probability <= 1 or pool < 1:
            raise ValueError(
                f"a draw with probability {probability!r} from {pool!r} items; expected more than 0 of each"
            )
        # A pool that has grown since is taken as it was: the share that is left is at most all of it.
        share = min(1.0, max(0.0, left / (pool - 1))) if pool > 1 else 0.0
        weights.append(1 + share * (1 / (pool * probability) - 1))
    return weights


def weighted_rate(trials: Iterable[tuple[Hashable, float, bool]]) -> Estimate | None:
    """The share of successes among trials of (cluster, weight, success), with its interval; None without trials.

    The interval is that of a proportion (see `proportion`) in as many independent trials as these are worth, so it is
    never of zero width: ten reviews without a fault do not show that there is none.
    """
    return _rate([trial for trial in trials if trial[1] > 0])


def _rate(trials: Sequence[tuple[Hashable, float, bool]]) -> Estimate | None:
    if not trials:
        return None
    whole = fsum(weight for _, weight, _ in trials)
    mean = min(1.0, fsum(weight for _, weight, success in trials if success) / whole)
    sums = _by_cluster((cluster, (weight, weight * (success - mean))) for cluster, weight, success in trials)
    worth = whole**2 / fsum(weight * weight for weight, _ in sums.values())
    trials_worth = worth
    if 0 < mean < 1 and len(sums) > 1:
        squares = fsum(residual * residual for _, residual in sums.values())
        error = sqrt(len(sums) / (len(sums) - 1) * squares) / whole
        minority = min(
            len({cluster for cluster, _, success in trials if success is outcome}) for outcome in (True, False)
        )
        share = max(worth / _most(trials, whole), error**2 * worth / (mean * (1 - mean)))
        trials_worth = worth / share ** (belief(share, minority) if share < 1 else 1.0)
    return Estimate(mean, *proportion_interval(mean, trials_worth), len(sums))


def _most(trials: Sequence[tuple[Hashable, float, bool]], whole: float) -> float:
    """How many independent trials these are worth at most: as if no two were of one cluster."""
    return whole**2 / fsum(weight * weight for _, weight, _ in trials)


def _by_cluster(parts: Iterable[tuple[Hashable, tuple[float, float]]]) -> dict[Hashable, tuple[float, float]]:
    sums: defaultdict[Hashable, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for cluster, (first, second) in parts:
        held = sums[cluster]
        sums[cluster] = held[0] + first, held[1] + second
    return sums


# ── Cohen's kappa ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Cells(NamedTuple):
    """The shares of the four ways in which two judges can say yes or no."""

    both: float
    only_first: float
    only_second: float
    neither: float

    @property
    def agreement(self) -> float:
        return self.both + self.neither

    @property
    def by_chance(self) -> float:
        first, second = self.both + self.only_first, self.both + self.only_second
        return first * second + (1 - first) * (1 - second)

    @property
    def kappa(self) -> float:
        return (self.agreement - self.by_chance) / (1 - self.by_chance)


def agreement_beyond_chance(items: Iterable[DrawnItem]) -> Estimate | None:
    """Cohen's kappa of the two judges with its interval; None where one of them always says the same.

    1: they agree on everything. 0: they agree as often as chance would have it.
    """
    drawn = [item for item in items if item.weight > 0]
    if not drawn:
        return None
    cells = _cells(drawn)
    if cells.by_chance >= 1 or not _varies(drawn):
        return None
    clusters = {item.cluster for item in drawn}
    low, high = _kappa_interval(drawn, cells, len(clusters))
    return Estimate(cells.kappa, low, high, len(clusters))


def _varies(drawn: Sequence[DrawnItem]) -> bool:
    return len({item.first for item in drawn}) > 1 or len({item.second for item in drawn}) > 1


def _cells(drawn: Sequence[DrawnItem], pseudo: float = 0.0) -> _Cells:
    """The weighted shares of the cells; `pseudo` is added to each, in items that weigh as much as the others do."""
    whole = fsum(item.weight for item in drawn)
    each = pseudo * whole / len(drawn)
    sums = [
        fsum(item.weight for item in drawn if (item.first, item.second) == cell) + each
        for cell in ((True, True), (True, False), (False, True), (False, False))
    ]
    total = fsum(sums)
    return _Cells(*(one / total for one in sums))


def _kappa_interval(drawn: Sequence[DrawnItem], cells: _Cells, clusters: int) -> Interval:
    """The wider, at each end, of two intervals.

    One is that of plain agreement, at the chance agreement that was seen: it is wide enough where hardly a disagreement
    was met. The other is by linearisation, with imagined items: it also knows that chance agreement is an estimate.
    """
    eased = _cells(drawn, _IMAGINED)
    agreement = weighted_rate((item.cluster, item.weight, item.first == item.second) for item in drawn)
    if agreement is None or clusters == 1:
        return Interval(-1.0, 1.0)
    chance = eased.by_chance
    plain = Interval((agreement.low - chance) / (1 - chance), (agreement.high - chance) / (1 - chance))
    linear = _linear_interval(drawn, eased, clusters)
    low, high = min(plain.low, linear.low, cells.kappa), max(plain.high, linear.high, cells.kappa)
    return Interval(max(-1.0, low), min(1.0, high))


def _linear_interval(drawn: Sequence[DrawnItem], eased: _Cells, clusters: int) -> Interval:
    """By linearisation, on a scale (Fisher's) that keeps it between -1 and 1."""
    kappa, chance = eased.kappa, eased.by_chance
    first, second = eased.both + eased.only_first, eased.both + eased.only_second

    def influence(one: bool, other: bool) -> float:
        expected = (one - first) * (2 * second - 1) + (other - second) * (2 * first - 1)
        return (((one == other) - eased.agreement) - (1 - kappa) * expected) / (1 - chance)

    sums = _by_cluster(
        (item.cluster, (item.weight, item.weight * influence(item.first, item.second))) for item in drawn
    )
    whole = fsum(item.weight for item in drawn)
    each = whole / len(drawn)
    imagined = [_IMAGINED * (each * influence(one, other)) ** 2 for one in (True, False) for other in (True, False)]
    squares = fsum([*(residual * residual for _, residual in sums.values()), *imagined])
    error = sqrt(clusters / (clusters - 1) * squares) / (whole + 4 * _IMAGINED * each)
    reach = normal_quantile(0.975) * error / (1 - kappa * kappa)
    return Interval(tanh(atanh(kappa) - reach), tanh(atanh(kappa) + reach))
