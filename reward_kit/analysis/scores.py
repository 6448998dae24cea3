# SPDX-License-Identifier: Apache-2.0
"""Scores as they are, not only whether they pass: means with intervals over queries, and how scores are spread.

Every mean is made of sums per query, and by the estimator that a run's own summary uses (`ClusteredMean`), so that a
figure is the same wherever it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Self
from weakref import WeakKeyDictionary

import numpy as np

from reward_kit.analysis.judged_answers import METRIC, Integers, JudgedAnswers, Numbers, dot
from reward_kit.statistics import ClusteredMean, ClusterSums, Estimate

__all__ = ["Bin", "QueryScores", "ScoreSpread", "metric_scores", "query_scores", "round_steps", "score_spread"]

_FEW_VALUES = 12
"""So many different scores are counted one by one; more are counted in bins."""
_SAMPLE = 1_000
"""Scores that are looked at first, to see whether there are many different ones."""
_BINS = 10
_NOT_A_DIGIT = 1e-9
_ROUNDING = 1e-9
"""A difference this much smaller than what it is made of is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryScores:
    """The scores of each query, summed."""

    sizes: Integers
    """How many scores each query has."""
    sums: Numbers
    squares: Numbers
    """The sum of each query's squared scores."""
    shift: float
    """Some score: sums are also kept less this much per score, for scores that differ little and are large."""
    shifted: Numbers
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Whether all of a query's scores lie between 0 and 1."""

    @classmethod
    def of(cls, experiment: JudgedAnswers, scores: Numbers) -> Self:
        """Sum up the scores of rows; NaN is none."""
        starts, missing = experiment.starts[:-1], np.isnan(scores)
        values, sizes = scores, experiment.sizes
        if missing.any():
            values = np.where(missing, 0.0, scores)
            sizes = sizes - np.add.reduceat(missing, starts, dtype=np.int64)
        shift = 0.0 if missing.all() else float(scores[np.argmin(missing)])
        sums = np.add.reduceat(values, starts)
        if values.min(initial=0.0) >= 0 and values.max(initial=0.0) <= 1:
            inside = np.ones(experiment.queries, dtype=np.bool_)
        else:
            inside = np.logical_and.reduceat((values >= 0) & (values <= 1), starts)
        return cls(
            sizes=sizes,
            sums=sums,
            squares=np.add.reduceat(values * values, starts),
            shift=shift,
            shifted=sums - shift * sizes if inside.all() else np.add.reduceat(_less(values, shift, missing), starts),
            inside=inside,
        )

    def mean(self, queries: Integers | slice = slice(None)) -> Estimate | None:
        """The mean of the scores of some queries, its interval over queries; None where they have none."""
        sizes = self.sizes[queries]
        clusters = int(np.count_nonzero(sizes))
        if not clusters:
            return None
        sums, shifted = self.sums[queries], self.shifted[queries]
        weights = sizes.astype(np.float64)  # products of whole numbers are summed one by one, of others many at once
        found = ClusterSums(
            clusters=clusters,
            scores=int(sizes.sum()),
            shift=self.shift,
            totals=float(shifted.sum()),
            total_squares=dot(shifted, shifted),
            totals_by_size=dot(shifted, weights),
            size_squares=dot(weights, weights),
            bounded=bool(self.inside[queries].all()),
            passing=float(np.minimum(1.0, sums).sum()),
            failing=float(np.minimum(1.0, weights - sums).sum()),
            score_squares=float(self.squares[queries].sum()),
        )
        return ClusteredMean.of(found).estimate()

    def of_query(self) -> Numbers:
        """The mean score of each query, NaN where it has none."""
        with np.errstate(invalid="ignore"):
            return self.sums / self.sizes

    def variance(self) -> Numbers:
        """The variance of each query's scores: 0 where it is no more than a rounding error, NaN where it has none."""
        with np.errstate(invalid="ignore"):
            squares = self.squares / self.sizes
            found = squares - (self.sums / self.sizes) ** 2
        return np.where(found <= _ROUNDING * squares, 0.0 * found, found)


_KNOWN: WeakKeyDictionary[JudgedAnswers, QueryScores] = WeakKeyDictionary()


def query_scores(experiment: JudgedAnswers) -> QueryScores:
    """The scores of each query; summed once, however many figures are made of them."""
    found = _KNOWN.get(experiment)
    if found is None:
        found = _KNOWN[experiment] = QueryScores.of(experiment, experiment.scores)
    return found


def _less(values: Numbers, shift: float, missing: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Numbers:
    return np.where(missing, 0.0, values - shift)


def metric_scores(experiment: JudgedAnswers) -> dict[str, QueryScores]:
    """What was measured beside the score, summed per query."""
    found = {name: experiment.numbers(f"{METRIC}{name}") for name in sorted(experiment.metrics)}
    return {name: QueryScores.of(experiment, values) for name, values in found.items() if values is not None}


# ── how scores are spread ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Bin:
    """How many scores lie from `low` up to, and without, `high`; the last bin includes it. Equal ends: that score."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """How the scores of judged answers are spread."""

    count: int
    lowest: float
    p25: float
    median: float
    p75: float
    highest: float
    deviation: float
    """The standard deviation of single scores."""
    bins: tuple[Bin, ...]


def score_spread(scores: Numbers) -> ScoreSpread | None:
    """The spread of scores of which NaN are none."""
    known = scores[~np.isnan(scores)]
    if not len(known):
        return None
    p25, median, p75 = np.quantile(known, (0.25, 0.5, 0.75)).tolist()
    lowest, highest = float(known.min()), float(known.max())
    bins = _counted(known) or _binned(known, lowest, highest)
    return ScoreSpread(len(known), lowest, p25, median, p75, highest, float(known.std()), bins)


def _counted(known: Numbers) -> tuple[Bin, ...]:
    """Each score by itself, where there are few different ones."""
    if len(np.unique(known[:_SAMPLE])) > _FEW_VALUES:
        return ()
    values, counts = np.unique(known, return_counts=True)
    if len(values) > _FEW_VALUES:
        return ()
    return tuple(Bin(value, value, count) for value, count in zip(values.tolist(), counts.tolist(), strict=True))


def _binned(known: Numbers, lowest: float, highest: float) -> tuple[Bin, ...]:
    edges = round_steps(min(lowest, 0.0) if lowest >= 0 and highest <= 1 else lowest, max(highest, lowest), _BINS)
    width = edges[1] - edges[0]
    places = np.clip(((known - edges[0]) / width + _NOT_A_DIGIT).astype(np.int64), 0, len(edges) - 2)
    counts = np.bincount(places, minlength=len(edges) - 1).tolist()
    return tuple(Bin(low, high, count) for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True))


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Round numbers, evenly apart, from at most `low` to at least `high`, with at most `most` steps between them.

    >>> round_steps(0.048, 0.882, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if span <= _ROUNDING * max(abs(low), abs(high), 1.0):  # one value: a little room around it
        span = max(abs(high), 1.0) * 0.1
    power = 10.0 ** floor(log10(span / most))
    for step in (power * factor for factor in (1, 2, 2.5, 5, 10, 20)):
        first, last = floor(low / step + _NOT_A_DIGIT), ceil(high / step - _NOT_A_DIGIT)
        if last - first <= most:
            break
    last = max(last, first + 1)
    digits = max(0, 2 - floor(log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]
