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


def measured(queries: tuple[int, ...], simulations: int, *, seed: int = 1) -> Iterator[Setting]:
    """Simulate every setting with these numbers of queries."""
    rng = np.random.default_rng(seed)
    for count in queries:
        for correlation in CORRELATIONS:
            for mean in MEANS:
                chances = _chances(rng, (simulations, count), mean, correlation)
                first = _rights(rng, chances, correlation)
                better = chances + BETTER * (1 - chances)
                yield from _of_passes(first, mean, correlation)
                yield _of_differences(first, _rights(rng, better, correlation), mean, correlation)


def _chances(rng: np.random.Generator, shape: tuple[int, int], mean: float, correlation: float) -> NDArray[np.float64]:
    if not correlation:
        return np.full(shape, mean)
    if correlation == 1:
        return (rng.random(shape) < mean).astype(np.float64)
    strength = 1 / correlation - 1
    return rng.beta(mean * strength, (1 - mean) * strength, shape)


def _rights(rng: np.random.Generator, chances: NDArray[np.float64], correlation: float) -> NDArray[np.int64]:
    """How many of each query's answers are right; all or none of them where they are fully alike."""
    if correlation == 1:
        return ANSWERS * (rng.random(chances.shape) < chances).astype(np.int64)
    return rng.binomial(ANSWERS, chances)


def _of_passes(rights: NDArray[np.int64], mean: float, correlation: float) -> Iterator[Setting]:
    simulations, queries = rights.shape
    held: Counter[int] = Counter()
    truths = {k: _pass_truth(mean, correlation, k) for k in KS}
    for row in rights:
        passes = PassAtK(ANSWERS)
        for right, times in enumerate(np.bincount(row, minlength=ANSWERS + 1).tolist()):
            if times:
                passes.add(ANSWERS, right, times)
        for k in KS:
            estimate = passes.estimate(k)
            held[k] += estimate is not None and _inside(estimate.low, truths[k], estimate.high)
    for k in KS:
        some, none = (rights > 0).sum(), (rights <= ANSWERS - k).sum()
        showing = float(min(some, none)) / simulations
        yield Setting(f"pass@{k}", queries, correlation, mean, held[k] / simulations, showing)


def _of_differences(before: NDArray[np.int64], after: NDArray[np.int64], mean: float, correlation: float) -> Setting:
    simulations, queries = before.shape
    changes = (after - before) / ANSWERS
    differing = np.count_nonzero(changes, axis=1)
    sums = zip(changes.sum(1).tolist(), (changes**2).sum(1).tolist(), differing.tolist(), strict=True)
    found = (paired_difference(total, squares, samples=queries, differing=count) for total, squares, count in sums)
    held = sum(_inside(one.low, BETTER * (1 - mean), one.high) for one in found)
    return Setting("difference", queries, correlation, mean, held / simulations, float(differing.mean()))


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
