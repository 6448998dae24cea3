"""How often the intervals hold the truth: simulated experiments, judged by the estimators that people read.

Each query has its own chance of a right answer (a beta distribution), so that its eight answers are alike by a given
correlation. Every setting is simulated many times, and the share of intervals that hold the true value is counted: for
the rate, for pass@k, and for the paired difference of two systems together with its test.

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
from reward_kit.statistics import PassAtK, paired_difference

__all__ = ["Setting", "main", "measured"]

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
    found = [*measured((20, 50), 100)] if quick else [*measured(QUERIES, SIMULATIONS)]
    rows = []
    for kind in ("pass", "difference"):
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
    for line in measured(QUERIES, int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS):
        print(f"{line.held:.4f}  {_words(line)}", flush=True)
