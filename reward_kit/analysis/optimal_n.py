# SPDX-License-Identifier: Apache-2.0
"""Optimal N: where another candidate stops paying.

A candidate more costs the same as the one before and brings less. It pays while what it brings, in verified answers
per unit of cost, reaches a bar: a tenth of what the first candidate brought, or, where it is known what a verified
answer is worth, what the candidate costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.pass_curve import CurvePoint, pass_curve
from reward_kit.statistics import Estimate

__all__ = ["OptimalN", "Step", "optimal_n", "optimal_n_of"]

WORTHWHILE = 0.1
"""The share of the first candidate's yield that another one must bring, where no value is given."""


@dataclass(frozen=True, slots=True)
class Step:
    """What going on to k candidates per query brings."""

    k: int
    cost: float
    """Of k candidates to one query."""
    verified_per_unit: float
    """Verified queries for a unit of cost, with k candidates each."""
    added_per_unit: Estimate
    """Verified queries that the last of them add for a unit of cost."""


@dataclass(frozen=True, slots=True)
class OptimalN:
    """The number of candidates after which another one does not pay."""

    n: int
    low: int
    """The n that the lower ends of the gains' intervals would give."""
    high: int
    """The n that the upper ends would give."""
    reached: bool
    """False where the last candidate drawn still pays: the best n may be larger than what was tried."""
    unit: str
    """What cost is counted in: money (`cost`), `completion_tokens`, or `candidates` where neither was noted."""
    per_candidate: float
    """What one candidate costs on average."""
    bar: float
    """The gain in pass@k that a candidate must bring to pay."""
    steps: tuple[Step, ...]


def optimal_n(source: ResultsLike, *, value: float | None = None, worthwhile: float = WORTHWHILE) -> OptimalN | None:
    """The optimal number of candidates; None where nothing was judged.

    `value` is what a verified answer is worth, in the unit of cost. Without it another candidate pays while it brings
    at least `worthwhile` of what the first one does.
    """
    experiment = load(source)
    return optimal_n_of(experiment, pass_curve(experiment), value=value, worthwhile=worthwhile)


def optimal_n_of(
    experiment: JudgedAnswers,
    curve: Sequence[CurvePoint],
    *,
    value: float | None = None,
    worthwhile: float = WORTHWHILE,
) -> OptimalN | None:
    """The same, from a curve that is there already."""
    if not curve:
        return None
    unit, each = _price(experiment)
    bar = worthwhile * curve[0].pass_at_k.value if value is None else each / value
    ends = [_last_paying(curve, [_of(point.gain, end) for point in curve], bar) for end in ("value", "low", "high")]
    return OptimalN(
        n=ends[0],
        low=ends[1],
        high=ends[2],
        reached=ends[0] < curve[-1].k,
        unit=unit,
        per_candidate=each,
        bar=bar,
        steps=tuple(_step(point, each) for point in curve),
    )


def _price(experiment: JudgedAnswers) -> tuple[str, float]:
    """The unit of cost, and what a candidate costs in it. Candidates of one request share a bill, so all count."""
    for unit in ("cost", "completion_tokens"):
        values = experiment.numbers(unit)
        if values is not None and (total := float(np.nansum(values))) > 0:
            return unit, total / experiment.records
    return "candidates", 1.0


def _of(estimate: Estimate, end: str) -> float:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}[end]


def _last_paying(curve: Sequence[CurvePoint], gains: Sequence[float], bar: float) -> int:
    """Go on while each candidate of the next step brings what it must; one candidate there is always."""
    best = curve[0].k
    for point, gain in zip(curve[1:], gains[1:], strict=True):
        if gain <= 0 or gain / (point.k - point.since) < bar:
            break
        best = point.k
    return best


def _step(point: CurvePoint, each: float) -> Step:
    spent = (point.k - point.since) * each
    gain = point.gain
    added = Estimate(gain.value / spent, gain.low / spent, gain.high / spent, gain.count)
    return Step(point.k, point.k * each, point.pass_at_k.value / (point.k * each), added)
