# SPDX-License-Identifier: Apache-2.0
"""pass@k for each k, and what one candidate more adds: the curve from which a number of candidates is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from reward_kit.analysis.judged_answers import Integers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.rates import pass_counts
from reward_kit.statistics import Estimate, ladder

__all__ = ["CurvePoint", "curve_of", "pass_curve"]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What k candidates per query give."""

    k: int
    pass_at_k: Estimate
    """At least one of k is verified; unbiased, over the queries with at least k judged candidates."""
    pass_hat_k: Estimate
    """Each of k is verified."""
    gain: Estimate
    """What the curve rose by since the point before, each query compared with itself."""
    since: int
    """The k of the point before; 0 for the first."""


def pass_curve(source: ResultsLike, split: str | None = None) -> list[CurvePoint]:
    """The curve of an experiment, or of one of its splits."""
    experiment = load(source)
    if split is None:
        return curve_of(experiment.judged, experiment.verified)
    if split not in experiment.splits:
        raise ValueError(f"there is no split {split!r}; there are: {', '.join(experiment.splits)}")
    queries = experiment.queries_of_split[experiment.splits.index(split)]
    return curve_of(experiment.judged[queries], experiment.verified[queries])


def curve_of(judged: Integers, verified: Integers) -> list[CurvePoint]:
    """The curve, from how many candidates of each query were judged and verified."""
    passes = pass_counts(judged, verified)
    points, before = [], 0
    for k in ladder(passes.k_max):
        value, each, gain = passes.estimate(k), passes.estimate_hat(k), passes.gain(k, before)
        if value is not None and each is not None and gain is not None:
            points.append(CurvePoint(k, value, each, gain, before))
            before = k
    return points
