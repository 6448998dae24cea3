# SPDX-License-Identifier: Apache-2.0
"""pass@k for each k, and what one candidate more adds: the curve from which a number of candidates is chosen.

All points rest on the same queries (see `rates.curve_queries`), so the curve never falls, and each point is the one
before it and the gain.
"""

from __future__ import annotations

from dataclasses import dataclass

from reward_kit.analysis.judged_answers import Integers, JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.rates import curve_queries, pass_bounds, pass_counts
from reward_kit.statistics import Estimate, Interval, ladder

__all__ = ["CurvePoint", "curve_of", "pass_curve"]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What k candidates per query give."""

    k: int
    pass_at_k: Estimate
    """At least one of k is verified; unbiased, over the queries of the curve."""
    pass_hat_k: Estimate
    """Each of k is verified."""
    gain: Estimate
    """What the curve rose by since the point before, each query compared with itself."""
    since: int
    """The k of the point before; 0 for the first."""
    bounds: Interval | None = None
    """pass@k of all queries, if all missing answers were wrong, and if all were right; None where none is missing."""


def pass_curve(source: ResultsLike, split: str | None = None) -> list[CurvePoint]:
    """The curve of an experiment, or of one of its splits."""
    experiment = load(source)
    if split is None:
        return curve_of(experiment)
    if split not in experiment.splits:
        raise ValueError(f"there is no split {split!r}; there are: {', '.join(experiment.splits)}")
    return curve_of(experiment, experiment.queries_of_split[experiment.splits.index(split)])


def curve_of(experiment: JudgedAnswers, queries: Integers | slice = slice(None)) -> list[CurvePoint]:
    """The curve of these queries."""
    judged, verified, sizes = experiment.judged[queries], experiment.verified[queries], experiment.sizes[queries]
    chosen = curve_queries(judged)
    passes = pass_counts(judged[chosen], verified[chosen])
    points, before = [], 0
    for k in ladder(int(judged[chosen].min(initial=passes.k_max))):
        value, each, gain = passes.estimate(k), passes.estimate_hat(k), passes.gain(k, before)
        if value is not None and each is not None and gain is not None:
            points.append(CurvePoint(k, value, each, gain, before, pass_bounds(sizes, judged, verified, k)))
            before = k
    return points
