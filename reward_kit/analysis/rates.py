"""Rates with their intervals, over queries: the answers to one query are not independent of each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from reward_kit.analysis.experiment import NOT_JUDGED, Integers, Numbers
from reward_kit.analysis.reading import Source, load
from reward_kit.statistics import Estimate, clustered_proportion_interval, wilson_interval

__all__ = ["CandidateRate", "candidate_rates", "mean_of_queries", "rate_of_rows", "verification_rates"]


@dataclass(frozen=True, slots=True)
class CandidateRate:
    """How often the candidates of one index are verified."""

    index: int
    judged: int
    rate: Estimate | None


def verification_rates(source: Source) -> dict[str, Estimate | None]:
    """The share of judged candidates that are verified: of each split, and of `all`."""
    experiment = load(source)
    judged, verified = experiment.judged, experiment.verified
    rates = {
        split: rate_of_rows(judged[queries], verified[queries])
        for split, queries in zip(experiment.splits, experiment.queries_of_split, strict=True)
    }
    return rates | {"all": rate_of_rows(judged, verified)}


def candidate_rates(source: Source) -> list[CandidateRate]:
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
    return CandidateRate(index, judged, Estimate(verified / judged, *wilson_interval(verified, judged), judged))


def rate_of_rows(judged: Integers, verified: Integers) -> Estimate | None:
    """Of all judged rows the share that is verified, from how many each query has; None where nothing was judged."""
    count = int(judged.sum())
    if not count:
        return None
    clusters = int(np.count_nonzero(judged))
    rate = float(verified.sum() / count)
    residuals = verified - rate * judged
    error = sqrt(clusters / (clusters - 1) * float(residuals @ residuals)) / count if clusters > 1 else inf
    low, high = clustered_proportion_interval(
        rate,
        error,
        clusters=count**2 / float(judged @ judged),
        answers=count,
        minority=int(min(np.count_nonzero(verified), np.count_nonzero(verified < judged))),
    )
    return Estimate(rate, low, high, clusters)


def mean_of_queries(values: Numbers, answers: float | None = None) -> Estimate | None:
    """The mean of one value between 0 and 1 a query, which rests on so many answers in all; NaN is no value."""
    known = values[~np.isnan(values)]
    count = len(known)
    if not count:
        return None
    mean = float(known.mean())
    low, high = clustered_proportion_interval(
        min(1.0, max(0.0, mean)),
        float(known.std(ddof=1)) / sqrt(count) if count > 1 else inf,
        clusters=count,
        answers=count if answers is None else max(count, answers),
        minority=int(min(np.count_nonzero(known > 0), np.count_nonzero(known < 1))),
    )
    return Estimate(mean, low, high, count)
