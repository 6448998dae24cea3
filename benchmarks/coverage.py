# SPDX-License-Identifier: Apache-2.0
"""How often the intervals hold the truth: simulated experiments, judged by the estimators that people read.

Each query has its own chance of a right answer (a beta distribution), so that its eight answers are alike by a given
correlation. Every setting is simulated many times, and the share of intervals that hold the true value is counted: for
the rate, for pass@k, and for the paired difference of two systems together with its test; for picking the best-scored
of k answers, for the majority of k, for the mean of graded scores, and for its paired difference.

    python -m benchmarks coverage          the summary
    python -m benchmarks.coverage          every setting, a line each
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Row
from reward_kit.analysis.rates import mean_of_queries
from reward_kit.statistics import (
    ClusteredMean,
    ClusterSums,
    Estimate,
    PassAtK,
    majority_at_k,
    paired_difference,
    rank_weights,
)

__all__ = ["Setting", "main", "measured", "measured_from_pools"]

ANSWERS = 8
KS = (1, 2, 4, 8)
QUERIES = (20, 50, 200, 1_000)
CORRELATIONS = (0.0, 0.2, 0.6, 1.0)
MEANS = (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98)
SIMULATIONS = 4_000
ENOUGH = 5
"""So many queries must show the rarer outcome, on average, before coverage is held to both bounds."""
BETTER = 0.1
"""The share of its failures that the second system gets right."""
LEAST, LOW, HIGH = 0.90, 0.93, 0.975
POOL = 40_000
"""Queries that an experiment of single answers draws from."""
TOLD_APART = 1.0
"""By how many standard deviations the scores of right answers lie above those of wrong ones."""
WRONG = (0.5, 0.3, 0.2)
"""How wrong answers divide among three that are equally wrong."""
SOME = 0.5
"""A graded score above it is that of a right answer."""

Chances = NDArray[np.float64]
Counts = NDArray[np.int64]


class Setting(NamedTuple):
    """One simulated setting of one figure."""

    figure: str
    queries: int
    correlation: float
    mean: float
    held: float
    """The share of intervals that held the truth."""
    showing: float
    """The queries that showed the rarer outcome (of a difference: that differed), on average."""


def main(*, quick: bool = False) -> Report:
    """Measure the whole grid; quick: a corner of it."""
    if quick:
        found = [*measured((20, 50), 100), *measured_from_pools((20, 50), 20)]
    else:
        found = [*measured(QUERIES, SIMULATIONS), *measured_from_pools(QUERIES, SIMULATIONS // 4)]
    rows = []
    for kind in ("pass", "difference", "best", "majority", "graded mean", "graded difference"):
        of_kind = [setting for setting in found if setting.figure.startswith(kind)]
        shown = [setting for setting in of_kind if setting.showing >= ENOUGH]
        inside = sum(LOW <= setting.held <= HIGH for setting in shown)
        worst, least, most = min(of_kind, key=_held), min(shown, key=_held), max(shown, key=_held)
        rows += [
            Row(f"{kind}: least coverage of all {len(of_kind)} settings", worst.held, _words(worst), LEAST, unit=""),
            Row(f"{kind}: least, {ENOUGH} queries or more", least.held, _words(least), LOW, unit=""),
            Row(f"{kind}: most, {ENOUGH} queries or more", most.held, _words(most), at_most=HIGH, unit=""),
            Row(f"{kind}: settings of these inside both", inside / len(shown), f"{inside} of {len(shown)}", unit=""),
        ]
    return Report("coverage", "how often 95 % intervals hold the truth, in simulated experiments", rows)


def _held(setting: Setting) -> float:
    return setting.held


def _words(setting: Setting) -> str:
    return (
        f"{setting.figure}, {setting.queries} queries, mean {setting.mean:g}, correlation {setting.correlation:g}; "
        f"{setting.showing:.1f} queries show it"
    )


def measured(
    queries: tuple[int, ...],
    simulations: int,
    *,
    correlations: tuple[float, ...] = CORRELATIONS,
    means: tuple[float, ...] = MEANS,
    answers: int = ANSWERS,
    seed: int = 1,
) -> Iterator[Setting]:
    """Simulate every setting with these numbers of queries.

    An experiment is drawn as what the estimators see of it: how many queries have each number of right answers (or each
    difference). That is the same as to draw query by query, and hundreds of times faster.
    """
    rng = np.random.default_rng(seed)
    for count in queries:
        for correlation in correlations:
            for mean in means:
                rights = rng.multinomial(count, _right_chances(mean, correlation, answers), simulations)
                yield from _of_passes(rights, mean, correlation)
                changes = rng.multinomial(count, _change_chances(mean, correlation, answers), simulations)
                yield _of_differences(changes, mean, correlation)


# ── figures of single answers ────────────────────────────────────────────────────────────────────────────────────────


class _Pool(NamedTuple):
    """Many queries, taken for all there are: an experiment draws from them, and their mean is the truth."""

    values: dict[str, Chances]
    """One value per query, for each figure."""
    scores: Chances
    """The graded score of each answer to each query."""
    changes: Chances
    """By how much the mean score of each query differs in a second system."""


def measured_from_pools(queries: tuple[int, ...], simulations: int, *, seed: int = 1) -> Iterator[Setting]:
    """Simulate the figures that rest on single answers: which is picked, what a majority says, graded scores."""
    rng = np.random.default_rng(seed)
    for correlation, mean in product(CORRELATIONS, MEANS):
        pool = _pool(mean, correlation, rng)
        for count in queries:
            drawn = rng.integers(POOL, size=(simulations, count))
            for figure, values in pool.values.items():
                yield _of_picks(figure, values, drawn, mean, correlation)
            yield _of_grades(pool.scores, drawn, mean, correlation)
            yield _of_changes(pool.changes, drawn, mean, correlation)


def _pool(mean: float, correlation: float, rng: np.random.Generator) -> _Pool:
    chance = _chances(mean, correlation, rng)
    right = rng.random((POOL, ANSWERS)) < chance[:, None]
    by_rank = np.take_along_axis(right, np.argsort(rng.normal(right * TOLD_APART), axis=1), 1)
    values = {f"best of {k}": by_rank @ np.array(rank_weights(ANSWERS, k)) for k in KS[1:]}
    wrong = ANSWERS - right.sum(axis=1)
    groups = np.column_stack([right.sum(axis=1), rng.multinomial(wrong, WRONG)])
    kinds, of_query = np.unique(groups, axis=0, return_inverse=True)
    correct = (1.0, *(0.0 for _ in WRONG))
    for k in KS[1:]:
        won = [majority_at_k(tuple(kind), correct, k) for kind in kinds.tolist()]
        values[f"majority of {k}"] = np.array(won)[of_query.ravel()]
    scores = _graded(right, rng)
    second = rng.random((POOL, ANSWERS)) < chance[:, None]
    second |= rng.random((POOL, ANSWERS)) < BETTER
    return _Pool(values, scores, _graded(second, rng).mean(axis=1) - scores.mean(axis=1))


def _chances(mean: float, correlation: float, rng: np.random.Generator) -> Chances:
    """Each query's chance of a right answer."""
    if correlation == 0:
        return np.full(POOL, mean)
    if correlation == 1:
        return (rng.random(POOL) < mean).astype(np.float64)
    spread = 1 / correlation - 1
    return rng.beta(mean * spread, (1 - mean) * spread, POOL)


def _graded(right: NDArray[np.bool_], rng: np.random.Generator) -> Chances:
    """Scores between 0 and 1: a right answer gets most of them, and every answer some."""
    return 0.75 * right + 0.25 * rng.random(right.shape)


def _of_picks(figure: str, values: Chances, drawn: Counts, mean: float, correlation: float) -> Setting:
    k, sizes = int(figure.rsplit(maxsplit=1)[-1]), np.full(drawn.shape[1], ANSWERS)
    truth, held, showing = float(values.mean()), 0, 0.0
    for chosen in values[drawn]:
        estimate = mean_of_queries(chosen, sizes, k)
        held += estimate is not None and _inside(estimate.low, truth, estimate.high)
        showing += min(np.count_nonzero(chosen > 0), np.count_nonzero(chosen < 1))
    return Setting(figure, drawn.shape[1], correlation, mean, held / len(drawn), showing / len(drawn))


def _of_grades(scores: Chances, drawn: Counts, mean: float, correlation: float) -> Setting:
    truth, held = float(scores.mean()), 0
    for chosen in drawn:
        estimate = _mean_of(scores[chosen])
        held += estimate is not None and _inside(estimate.low, truth, estimate.high)
    right = (scores > SOME).any(axis=1).mean(), (scores < SOME).any(axis=1).mean()
    showing = float(min(right)) * drawn.shape[1]
    return Setting("graded mean", drawn.shape[1], correlation, mean, held / len(drawn), showing)


def _mean_of(scores: Chances) -> Estimate | None:
    """The estimate that `ClusteredMean` makes of these queries, from their sums."""
    sums = scores.sum(axis=1)
    found = ClusterSums(
        clusters=len(sums),
        scores=scores.size,
        shift=0.0,
        totals=float(sums.sum()),
        total_squares=float(sums @ sums),
        totals_by_size=float(sums.sum()) * ANSWERS,
        size_squares=float(len(sums) * ANSWERS**2),
        bounded=True,
        passing=float(np.minimum(1.0, sums).sum()),
        failing=float(np.minimum(1.0, ANSWERS - sums).sum()),
        score_squares=float((scores * scores).sum()),
    )
    return ClusteredMean.of(found).estimate()


def _of_changes(changes: Chances, drawn: Counts, mean: float, correlation: float) -> Setting:
    truth, held, count = float(changes.mean()), 0, drawn.shape[1]
    for chosen in changes[drawn]:
        total, squares, size = float(chosen.sum()), float(chosen @ chosen), float(np.abs(chosen).sum())
        found = paired_difference(total, squares, samples=count, absolute=size)
        held += _inside(found.low, truth, found.high)
    differing = float((np.abs(changes) > SOME / ANSWERS).mean()) * count
    return Setting("graded difference", count, correlation, mean, held / len(drawn), differing)


# ── figures of counts ────────────────────────────────────────────────────────────────────────────────────────────────


def _right_chances(mean: float, correlation: float, answers: int) -> Chances:
    """The chance of each number of right answers: the beta-binomial distribution."""
    if correlation == 1:
        return np.array([1 - mean, *[0.0] * (answers - 1), mean])
    rights = range(answers + 1)
    chances = [comb(answers, right) * _exactly(right, answers - right, mean, correlation) for right in rights]
    return np.array(chances) / sum(chances)


def _exactly(rights: int, wrongs: int, mean: float, correlation: float) -> float:
    """The chance that the first so many answers to a query are right, and the next so many wrong."""
    own, strength = 1 - correlation, 1.0
    for drawn in range(rights):
        strength *= (mean * own + drawn * correlation) / (own + drawn * correlation)
    for drawn in range(wrongs):
        strength *= ((1 - mean) * own + drawn * correlation) / (own + (rights + drawn) * correlation)
    return strength


def _change_chances(mean: float, correlation: float, answers: int) -> Chances:
    """The chance of each difference of right answers, from -answers to answers.

    The second system gets right what the first would have, asked again, and of the rest its share.
    """
    chances = np.zeros(2 * answers + 1)
    if correlation == 1:  # all answers of a system to a query are alike
        chances[answers], chances[-1] = 1 - BETTER * (1 - mean), BETTER * (1 - mean)
        return chances
    span = range(answers + 1)
    for first, again in product(span, span):
        ways = comb(answers, first) * comb(answers, again)
        rights = first + again
        chance = ways * _exactly(rights, 2 * answers - rights, mean, correlation)
        for won in range(answers - again + 1):
            share = comb(answers - again, won) * BETTER**won * (1 - BETTER) ** (answers - again - won)
            chances[answers + again + won - first] += chance * share
    chances /= chances.sum()
    return chances


def _of_passes(rights: Counts, mean: float, correlation: float) -> Iterator[Setting]:
    simulations, answers = len(rights), rights.shape[1] - 1
    ks = [k for k in KS if k <= answers]
    held: Counter[int] = Counter()
    truths = {k: _pass_truth(mean, correlation, k) for k in ks}
    drawn, repeats = np.unique(rights, axis=0, return_counts=True)
    for row, times in zip(drawn.tolist(), repeats.tolist(), strict=True):
        passes = PassAtK(answers)
        for right, queries in enumerate(row):
            if queries:
                passes.add(answers, right, queries)
        for k in ks:
            estimate = passes.estimate(k)
            if estimate is not None and _inside(estimate.low, truths[k], estimate.high):
                held[k] += times
    for k in ks:
        some, none = rights[:, 1:].sum(), rights[:, : answers - k + 1].sum()
        showing = float(min(some, none)) / simulations
        yield Setting(f"pass@{k}", int(rights[0].sum()), correlation, mean, held[k] / simulations, showing)


def _of_differences(changes: Counts, mean: float, correlation: float) -> Setting:
    simulations, queries, answers = len(changes), int(changes[0].sum()), changes.shape[1] // 2
    sizes = np.arange(-answers, answers + 1) / answers
    sums = zip(*((changes @ part).tolist() for part in (sizes, sizes**2, abs(sizes))), strict=True)
    found = (paired_difference(total, squares, samples=queries, absolute=size) for total, squares, size in sums)
    held = sum(_inside(one.low, BETTER * (1 - mean), one.high) for one in found)
    differing = queries - float(changes[:, answers].mean())
    return Setting("difference", queries, correlation, mean, held / simulations, differing)


def _inside(low: float, truth: float, high: float) -> bool:
    return low - 1e-12 <= truth <= high + 1e-12


def _pass_truth(mean: float, correlation: float, k: int) -> float:
    """The chance that one of k answers to a query is right: that of the beta-binomial distribution."""
    if correlation == 1:
        return mean
    failing = 1.0
    for drawn in range(k):
        failing *= ((1 - mean) * (1 - correlation) + drawn * correlation) / (1 - correlation + drawn * correlation)
    return 1 - failing


if __name__ == "__main__":
    times = int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS
    for line in (*measured(QUERIES, times), *measured_from_pools(QUERIES, times // 4)):
        print(f"{line.held:.4f}  {_words(line)}", flush=True)
