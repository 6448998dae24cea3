"""pass@k for each k, and what one candidate more adds: the curve from which a number of candidates is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reward_kit.analysis.experiment import Integers
from reward_kit.analysis.reading import Source, load
from reward_kit.statistics import Estimate, PassAtK

__all__ = ["CurvePoint", "curve_of", "pass_curve", "worthwhile_ks"]

_ALL_UP_TO = 16
"""So many points are each worth a line; beyond, the curve is told at ever larger steps."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What k candidates a query give."""

    k: int
    pass_at_k: Estimate
    """At least one of k is verified; unbiased, over the queries with at least k judged candidates."""
    pass_hat_k: Estimate
    """Each of k is verified."""
    gain: Estimate
    """What the curve rose by since the point before, each query compared with itself."""
    since: int
    """The k of the point before; 0 for the first."""


def pass_curve(source: Source, split: str | None = None) -> list[CurvePoint]:
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
    passes = _counted(judged, verified)
    points, before = [], 0
    for k in worthwhile_ks(passes.k_max):
        value, each, gain = passes.estimate(k), passes.estimate_hat(k), passes.gain(k, before)
        if value is not None and each is not None and gain is not None:
            points.append(CurvePoint(k, value, each, gain, before))
            before = k
    return points


def worthwhile_ks(most: int) -> list[int]:
    """Every k while there are few; then about four to each doubling, and the last."""
    ks = list(range(1, min(most, _ALL_UP_TO) + 1))
    step = _ALL_UP_TO // 4
    while ks and ks[-1] < most:
        nearest_power = 1 << (ks[-1].bit_length() - 1)
        step = max(step, nearest_power // 4)
        ks.append(min(most, ks[-1] + step))
    return ks


def _counted(judged: Integers, verified: Integers) -> PassAtK:
    """Count each pair (judged, verified) once: there are few, however many queries."""
    most = int(judged.max(initial=0))
    passes = PassAtK(most)
    pairs, times = np.unique(judged * (most + 1) + verified, return_counts=True)
    for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
        n, c = divmod(pair, most + 1)
        if n:
            passes.add(n, c, count)
    return passes
