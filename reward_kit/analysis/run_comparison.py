"""Experiments side by side, and two of them paired on the queries they have in common.

    query       baseline   other    difference
    q1          3 of 4     4 of 4     +0.25      won
    q2          1 of 4     1 of 4      0         tied
    q3          2 of 2     0 of 4     -1.00      lost
                           mean       -0.25      with its interval, and a test of the same model

A query weighs the same however many candidates it has. A difference is never told without its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.analysis.coverage import models_of
from reward_kit.analysis.hardest import query_lines
from reward_kit.analysis.judged_answers import Integers, JudgedAnswers, Numbers
from reward_kit.analysis.loading import Source, load
from reward_kit.analysis.rates import any_rate, mean_of_queries, rate_of_rows
from reward_kit.analysis.selection import first_candidate
from reward_kit.statistics import Estimate, paired_difference, pass_at_k

__all__ = ["Difference", "Flip", "Pairing", "RunComparison", "SideBySide", "compare"]

_FEW = 0.1
"""The share of common queries that may have too few judged candidates for the k that pass@k is compared at."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One experiment in a line."""

    name: str
    models: tuple[str, ...]
    candidates: int
    """The most candidates a query has: N."""
    queries: int
    records: int
    rate: Estimate | None
    first: Estimate | None
    any: Estimate | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two experiments on the same queries."""

    figure: str
    """`rate` (of a query's candidates), `first` (candidate) or `pass@k`."""
    split: str
    queries: int
    baseline: float
    other: float
    difference: float
    low: float
    """The 95 % interval of the difference, over queries (see `statistics.paired_difference`)."""
    high: float
    won: int
    """Queries on which the other experiment is better."""
    lost: int
    p: float
    """How likely so large a difference is if neither were better; below 0.05 exactly where the interval omits 0."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A query that most candidates got right in one experiment and most got wrong in the other."""

    split: str
    query_id: str
    gained: bool
    """Whether the other experiment is the one that got it right."""
    baseline: str
    """Such as `3/4`."""
    other: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two experiments on the queries they have in common."""

    baseline: str
    other: str
    common: int
    """Queries with a verdict in both. 0: there is no overlap, and nothing can be compared."""
    only_baseline: int
    only_other: int
    differences: tuple[Difference, ...]
    gained: int
    """Queries that flipped from mostly wrong to mostly right."""
    lost: int
    flips: tuple[Flip, ...]
    """The largest of them."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several experiments; each is paired with the first."""

    experiments: tuple[SideBySide, ...]
    pairings: tuple[Pairing, ...]

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON."""
        return asdict(self)


def compare(*sources: Source, examples: int = 5) -> RunComparison:
    """Put experiments side by side and pair each with the first, on the queries they have in common."""
    if len(sources) < len(("baseline", "other")):
        raise ValueError("one experiment cannot be compared; give two or more")
    experiments = [load(source) for source in sources]
    pairings = [_pair(experiments[0], other, examples) for other in experiments[1:]]
    return RunComparison(tuple(map(_in_a_line, experiments)), tuple(pairings))


def _in_a_line(experiment: JudgedAnswers) -> SideBySide:
    return SideBySide(
        name=experiment.name,
        models=models_of(experiment),
        candidates=int(experiment.sizes.max()),
        queries=experiment.queries,
        records=experiment.records,
        rate=rate_of_rows(experiment.judged, experiment.verified),
        first=mean_of_queries(first_candidate(experiment)),
        any=any_rate(experiment.judged, experiment.verified),
    )


def _pair(baseline: JudgedAnswers, other: JudgedAnswers, examples: int) -> Pairing:
    left, right = _common(baseline, other)
    judged = (baseline.judged[left] > 0) & (other.judged[right] > 0)
    left, right = left[judged], right[judged]
    differences = _differences(baseline, other, left, right) if len(left) else []
    flips = _flips(baseline, other, left, right)
    shown = flips[np.argsort(-np.abs(_change(baseline, other, left, right)[flips]), kind="stable")[:examples]]
    gained = _rate(other, right)[flips] > _rate(baseline, left)[flips]
    return Pairing(
        baseline=baseline.name,
        other=other.name,
        common=len(left),
        only_baseline=baseline.queries - len(left),
        only_other=other.queries - len(left),
        differences=tuple(differences),
        gained=int(gained.sum()),
        lost=int((~gained).sum()),
        flips=tuple(_shown(baseline, other, left[shown], right[shown])),
    )


def _common(baseline: JudgedAnswers, other: JudgedAnswers) -> tuple[Integers, Integers]:
    """The queries of both, found by split and id: the one's numbers, and the other's."""
    lefts, rights = [], []
    for split in baseline.splits:
        if split not in other.splits:
            continue
        left = baseline.queries_of_split[baseline.splits.index(split)]
        right = other.queries_of_split[other.splits.index(split)]
        found = pc.index_in(baseline.query_ids.take(left), value_set=other.query_ids.take(right))
        known = found.is_valid().to_numpy(zero_copy_only=False)
        lefts.append(left[known])
        rights.append(right[found.drop_null().to_numpy()])
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *lefts]), np.concatenate([none, *rights])


def _differences(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> list[Difference]:
    k = int(np.quantile(np.minimum(baseline.judged[left], other.judged[right]), _FEW, method="lower"))
    figures = {
        "rate": (_rate(baseline, left), _rate(other, right)),
        "first": (first_candidate(baseline)[left], first_candidate(other)[right]),
    }
    if k > 1:
        figures[f"pass@{k}"] = (_pass(baseline, left, k), _pass(other, right, k))
    splits = baseline.query_split[left]
    parts: list[tuple[str, NDArray[np.bool_]]] = [("all", np.ones(len(left), dtype=np.bool_))]
    present = np.unique(splits)
    if len(present) > 1:
        parts += [(baseline.splits[split], splits == split) for split in present.tolist()]
    found = (
        _difference(figure, split, before[chosen], after[chosen])
        for split, chosen in parts
        for figure, (before, after) in figures.items()
    )
    return [difference for difference in found if difference is not None]


def _rate(experiment: JudgedAnswers, queries: Integers) -> Numbers:
    return experiment.verified[queries] / experiment.judged[queries]


def _change(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> Numbers:
    return _rate(other, right) - _rate(baseline, left)


def _pass(experiment: JudgedAnswers, queries: Integers, k: int) -> Numbers:
    """pass@k of each query with at least k judged candidates, NaN of the others."""
    judged, verified = experiment.judged[queries], experiment.verified[queries]
    most = int(judged.max()) + 1
    pairs, which = np.unique(judged * most + verified, return_inverse=True)
    values = [pass_at_k(n, c, k) if n >= k else np.nan for n, c in (divmod(pair, most) for pair in pairs.tolist())]
    return np.array(values)[which]


def _difference(figure: str, split: str, before: Numbers, after: Numbers) -> Difference | None:
    known = ~(np.isnan(before) | np.isnan(after))
    before, after = before[known], after[known]
    if not len(before):
        return None
    change = after - before
    won, lost = int(np.count_nonzero(change > 0)), int(np.count_nonzero(change < 0))
    found = paired_difference(
        float(change.sum()), float(change @ change), samples=len(change), absolute=float(np.abs(change).sum())
    )
    return Difference(
        figure=figure,
        split=split,
        queries=len(change),
        baseline=float(before.mean()),
        other=float(after.mean()),
        difference=found.value,
        low=found.low,
        high=found.high,
        won=won,
        lost=lost,
        p=found.p,
    )


def _flips(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> Integers:
    """Which common queries crossed the half."""
    before, after = _rate(baseline, left) - 0.5, _rate(other, right) - 0.5
    return np.flatnonzero(before * after < 0)


def _shown(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> Sequence[Flip]:
    lines = zip(query_lines(baseline, left), query_lines(other, right), strict=True)
    return [
        Flip(
            split=before.split,
            query_id=before.query_id,
            gained=after.verified / after.judged > before.verified / before.judged,
            baseline=f"{before.verified}/{before.judged}",
            other=f"{after.verified}/{after.judged}",
            excerpt=before.excerpt or after.excerpt,
        )
        for before, after in lines
    ]
