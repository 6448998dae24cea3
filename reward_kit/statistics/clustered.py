# SPDX-License-Identifier: Apache-2.0
"""The mean of scores that come in clusters: the n answers to one sample are not independent of each other.

With clusters g of m_g scores whose residuals from the mean sum to r_g, G clusters and N scores in all, the standard
error of the mean is

    sqrt( G / (G - 1)  x  sum of r_g squared ) / N

It is the clustered standard error (Miller, "Adding Error Bars to Evals", 2024) with the usual correction for few
clusters. When all clusters have the same size it equals the standard error of the mean of the clusters' means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, inf, sqrt
from typing import NamedTuple, Self

from reward_kit.statistics.estimate import Estimate, Interval
from reward_kit.statistics.proportion import clustered_proportion_interval
from reward_kit.statistics.quantiles import student_t_quantile

__all__ = ["ClusterSums", "ClusteredMean", "clustered_standard_error"]

_ROUNDING = 1e-12
"""A sum of squares this much smaller than its parts is zero but for rounding."""


def clustered_standard_error(clusters: Iterable[Sequence[float]]) -> float:
    """The standard error of the mean of all scores; infinite when there is but one cluster."""
    filled = [cluster for cluster in clusters if cluster]
    if not filled:
        raise ValueError("there are no scores; give at least one cluster with one score in it")
    if len(filled) == 1:
        return inf
    count = sum(map(len, filled))
    mean = fsum(score for cluster in filled for score in cluster) / count
    squares = fsum(fsum(score - mean for score in cluster) ** 2 for cluster in filled)
    return sqrt(len(filled) / (len(filled) - 1) * squares) / count


class ClusterSums(NamedTuple):
    """All that a `ClusteredMean` keeps of its clusters, for those who have them as arrays and can sum them at once.

    Sums over clusters; `total` is the sum of a cluster's scores less `shift` each, `passed` the sum as it is.
    """

    clusters: int
    scores: int
    """Scores in all."""
    shift: float
    """Subtracted from each score, so that a large common part does not drown their differences."""
    totals: float
    total_squares: float
    totals_by_size: float
    """Of total times size."""
    size_squares: float
    bounded: bool
    """Whether all scores lie between 0 and 1. Where they do not, the next three are not used."""
    passing: float
    """Of passed, but at most 1 per cluster."""
    failing: float
    """Of size less passed, but at most 1 per cluster."""
    score_squares: float
    """Over scores, not clusters."""


class ClusteredMean:
    """The mean over all scores, with the interval that clusters of them allow, in constant memory.

    Where all scores lie between 0 and 1 the interval is that of a clustered proportion (see `proportion`): an all-pass
    run of ten samples says "at least 0.75", not "exactly 1", and so does a run in which one answer got 0.999. Otherwise
    nothing bounds the mean, and the interval is Student's, on one degree of freedom less than there are clusters.
    """

    __slots__ = (
        "_bounded", "_failing", "_passing", "_score_squares", "_shift", "_size_squares", "_sum_squares", "_sums",
        "_sums_by_size", "clusters", "count",
    )  # fmt: skip

    def __init__(self) -> None:
        """Start with no scores."""
        self.clusters = 0
        """Clusters that had a score in them."""
        self.count = 0
        """Scores in all."""
        self._bounded = True
        self._passing = self._failing = self._score_squares = 0.0
        # Scores are taken relative to the first one, so that a large common part does not drown their differences.
        self._shift = 0.0
        self._sums = self._sum_squares = self._sums_by_size = self._size_squares = 0.0

    @classmethod
    def of(cls, sums: ClusterSums) -> Self:
        """The mean of clusters that were summed elsewhere."""
        made = cls()
        made.clusters, made.count, made._shift, made._sums = sums.clusters, sums.scores, sums.shift, sums.totals
        made._sum_squares, made._sums_by_size = sums.total_squares, sums.totals_by_size
        made._size_squares, made._bounded = sums.size_squares, sums.bounded
        made._passing, made._failing, made._score_squares = sums.passing, sums.failing, sums.score_squares
        return made

    def add(self, scores: Sequence[float]) -> None:
        """Add a cluster. One without scores says nothing and counts for nothing."""
        if not scores:
            return
        if not self.clusters:
            self._shift = scores[0]
        size = len(scores)
        total = scores[0] - self._shift if size == 1 else fsum([score - self._shift for score in scores])
        self.clusters += 1
        self.count += size
        self._sums += total
        self._sum_squares += total * total
        self._sums_by_size += total * size
        self._size_squares += size * size
        if self._bounded and size == 1:
            passed = scores[0]
            self._bounded = 0 <= passed <= 1
            self._passing += min(1.0, passed)
            self._failing += min(1.0, 1 - passed)
            self._score_squares += passed * passed
        elif self._bounded:
            self._bounded = min(scores) >= 0 and max(scores) <= 1
            passed = fsum(scores)
            self._passing += min(1.0, passed)
            self._failing += min(1.0, size - passed)
            self._score_squares += fsum([score * score for score in scores])

    @property
    def mean(self) -> float:
        """The mean of all scores added."""
        return self._shift + self._sums / self.count

    @property
    def standard_error(self) -> float:
        """The clustered standard error of the mean; infinite when there is but one cluster."""
        if self.clusters == 1:
            return inf
        return sqrt(self.clusters / (self.clusters - 1) * self._residual_squares()) / self.count

    def estimate(self) -> Estimate | None:
        """The mean with its interval; None when nothing was added."""
        if not self.clusters:
            return None
        mean = min(1.0, max(0.0, self.mean)) if self._bounded else self.mean
        low, high = self._interval(mean)
        return Estimate(mean, low, high, self.clusters)

    def _residual_squares(self) -> float:
        """The sum over clusters of (sum of residuals) squared, from sums that were kept before the mean was known."""
        offset = self._sums / self.count
        parts = (self._sum_squares, -2 * offset * self._sums_by_size, offset * offset * self._size_squares)
        squares = fsum(parts)
        return squares if squares > _ROUNDING * self._sum_squares else 0.0

    def _interval(self, mean: float) -> Interval:
        error = self.standard_error
        if self._bounded:
            clusters = self.count**2 / self._size_squares
            return clustered_proportion_interval(
                mean,
                error,
                clusters=clusters,
                least_share=clusters / self.count * self._spread(mean),
                minority=min(self._passing, self._failing),
            )
        if error == inf:
            return Interval(-inf, inf)
        reach = student_t_quantile(0.975, self.clusters - 1) * error
        return Interval(mean - reach, mean + reach)

    def _spread(self, mean: float) -> float:
        """The variance of single scores as a share of what it is for passes and failures with the same mean."""
        most = mean * (1 - mean)
        variance = self._score_squares / self.count - mean * mean
        return min(1.0, variance / most) if most > 0 and variance > _ROUNDING * most else 0.0
