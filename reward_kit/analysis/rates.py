# SPDX-License-Identifier: Apache-2.0
"""Rates with their intervals, over queries: the answers to one query are not independent of each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import NOT_JUDGED, Integers, Numbers, dot
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.statistics import (
    Estimate,
    Interval,
    PassAtK,
    clustered_proportion_interval,
    pass_at_k,
    proportion_interval,
)

__all__ = [
    "CandidateRate",
    "any_rate",
    "candidate_rates",
    "curve_queries",
    "mean_of_queries",
    "pass_bounds",
    "pass_counts",
    "rate_of_rows",
    "share_bounds",
    "verification_rates",
]

_FEW_PAIRS = 1 << 20


@dataclass(frozen=True, slots=True)
class CandidateRate:
    """How often the candidates of one index are verified."""

    index: int
    judged: int
    rate: Estimate | None


def verification_rates(source: ResultsLike) -> dict[str, Estimate | None]:
    """The share of judged candidates that are verified: of each split, and of `all`."""
    experiment = load(source)
    judged, verified = experiment.judged, experiment.verified
    rates = {
        split: rate_of_rows(judged[queries], verified[queries])
        for split, queries in zip(experiment.splits, experiment.queries_of_split, strict=True)
    }
    return rates | {"all": rate_of_rows(judged, verified)}


def candidate_rates(source: ResultsLike) -> list[CandidateRate]:
    """The rate of each candidate index: does the first win?"""
    experiment = load(source)
    kinds = len((NOT_JUDGED, 0, 1))
    tally = np.bincount(experiment.candidate * kinds + (experiment.verdict - NOT_JUDGED))
    counts = np.pad(tally, (0, -len(tally) % kinds)).reshape(-1, kinds)
    present = np.flatnonzero(counts.sum(axis=1))
    return [_candidate_rate(int(index), int(counts[index, 2]), int(counts[index, 1])) for index in present]


def _candidate_rate(index: int, verified: int, refused: int) -> CandidateRate:
    """Each query has one candidate of an index, so these are independent."""
    judged = verified + refused
    if not judged:
        return CandidateRate(index, 0, None)
    rate = verified / judged
    return CandidateRate(index, judged, Estimate(rate, *proportion_interval(rate, judged), judged))


def rate_of_rows(judged: Integers, verified: Integers) -> Estimate | None:
    """Of all judged rows the share that is verified, from how many each query has; None where nothing was judged."""
    count = int(judged.sum())
    if not count:
        return None
    clusters = int(np.count_nonzero(judged))
    rate = float(verified.sum() / count)
    weights = judged.astype(np.float64)  # products of whole numbers are summed one by one, of others many at once
    residuals = verified - rate * weights
    error = sqrt(clusters / (clusters - 1) * dot(residuals, residuals)) / count if clusters > 1 else inf
    equal = count**2 / dot(weights, weights)
    low, high = clustered_proportion_interval(
        rate,
        error,
        clusters=equal,
        least_share=equal / count,
        minority=int(min(np.count_nonzero(verified), np.count_nonzero(verified < judged))),
    )
    return Estimate(rate, low, high, clusters)


def mean_of_queries(values: Numbers, sizes: Integers | None = None, k: int | None = None) -> Estimate | None:
    """The mean of one value per query, between 0 and 1; NaN is no value.

    Each value is over every choice of `k` of the query's answers, of which there are `sizes`. Without them it is of one
    choice a query: of the first answer, say, or of all of them.
    """
    known = ~np.isnan(values)
    values = values[known]
    count = len(values)
    if not count:
        return None
    mean = min(1.0, max(0.0, float(values.mean())))
    if sizes is None or k is None:
        least, minority = 1.0, min(mean, 1 - mean) * count
    else:
        draws, least = sizes[known] / k, _least_share(sizes[known], k)
        minority = min(float(np.minimum(1.0, part * draws).sum()) for part in (values, 1 - values))
    low, high = clustered_proportion_interval(
        mean,
        float(values.std(ddof=1)) / sqrt(count) if count > 1 else inf,
        clusters=count,
        least_share=least,
        minority=minority,
    )
    return Estimate(mean, low, high, count)


def _least_share(sizes: Integers, k: int) -> float:
    """What the choices of k of a query's answers would share if each were independent: one by how many there are."""
    times = np.bincount(sizes)
    return sum(float(times[n]) / comb(n, k) for n in np.flatnonzero(times).tolist()) / len(sizes)


def any_rate(judged: Integers, verified: Integers) -> Estimate | None:
    """The share of queries with at least one verified candidate.

    It is pass@k of all candidates, and so no interval of a smaller k of the same queries ends above its own.
    """
    count = int(np.count_nonzero(judged))
    if not count:
        return None
    rate = int(np.count_nonzero(verified)) / count
    low, high = proportion_interval(rate, count)
    fewest = int(judged.min(initial=int(judged.max()), where=judged > 0))
    fewer = pass_counts(judged, verified).estimate(fewest)
    if fewer is not None:
        low, high = max(low, fewer.low), max(high, fewer.high)
    return Estimate(rate, low, high, count)


def pass_counts(judged: Integers, verified: Integers) -> PassAtK:
    """Count each pair (judged, verified) once: there are few, however many queries."""
    most = int(judged.max(initial=0))
    passes = PassAtK(most)
    keys = judged * (most + 1) + verified
    if (most + 1) ** 2 <= _FEW_PAIRS:  # counting is faster than sorting
        tally = np.bincount(keys)
        pairs = np.flatnonzero(tally)
        times = tally[pairs]
    else:
        pairs, times = np.unique(keys, return_counts=True)
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        n, c = divmod(pair, most + 1)
        if n:
            passes.add(n, c, count)
    return passes


# ── answers without a verdict ────────────────────────────────────────────────────────────────────────────────────────


def curve_queries(judged: Integers) -> NDArray[np.bool_]:
    """The queries that pass@k rests on, the same for every k: those with as many judged answers as k goes up to.

    It goes as far as at least half of the judged queries have answers. The pass@k of other queries at each k would rise
    and fall with the queries, and not with k.
    """
    sizes = np.sort(judged[judged > 0])
    found: NDArray[np.bool_] = judged >= (sizes[len(sizes) // 2] if len(sizes) else 1)
    return found


def pass_bounds(sizes: Integers, judged: Integers, verified: Integers, k: int) -> Interval | None:
    """pass@k of all queries, if every answer without a verdict were wrong, and if every one were right.

    A query with fewer than k answers lacks the others. None where nothing is missing.
    """
    whole = np.maximum(sizes, k)
    missing = whole - judged
    if not missing.any():
        return None
    kinds, times = np.unique(np.stack([whole, verified, missing]), axis=1, return_counts=True)
    low = high = 0.0
    for (n, c, lacking), count in zip(kinds.T.tolist(), times.tolist(), strict=True):
        low += count * pass_at_k(n, c, k)
        high += count * pass_at_k(n, c + lacking, k)
    return Interval(low / len(judged), high / len(judged))


def share_bounds(right: float, missing: int, whole: int) -> Interval | None:
    """A share of `whole`, if what is missing were all wrong, and if all were right; None where nothing is missing."""
    return Interval(right / whole, (right + missing) / whole) if missing else None
