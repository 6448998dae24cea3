# SPDX-License-Identifier: Apache-2.0
"""Experiments side by side, and two of them paired on the queries they have in common.

    query       baseline   other    difference
    q1          3 of 4     4 of 4     +0.25      won
    q2          1 of 4     1 of 4      0         tied
    q3          2 of 2     0 of 4     -1.00      lost
                           mean       -0.25      with its interval, and a test of the same model

A query weighs the same however many candidates it has. A difference is never told without its interval. Only samples
that are the same in both are paired (see `same_samples`), and where other rewards judged, nothing is called better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reward_kit.analysis.coverage import models_of
from reward_kit.analysis.figures import cut_off
from reward_kit.analysis.hardest import QueryLine, query_lines
from reward_kit.analysis.judged_answers import Integers, JudgedAnswers, Judging, Numbers, dot
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.rates import any_rate, mean_of_queries, rate_of_rows
from reward_kit.analysis.same_samples import SharedSamples, same_samples
from reward_kit.analysis.scores import metric_scores, query_scores
from reward_kit.analysis.selection import first_candidate
from reward_kit.statistics import Estimate, PairedDifference, paired_difference, pass_at_k

__all__ = ["Difference", "Flip", "Pairing", "RunComparison", "SideBySide", "common_queries", "compare"]

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
    mean: Estimate | None
    """The mean score."""
    rate: Estimate | None
    """Verified candidates. This and the next two: None where nobody said which scores pass."""
    first: Estimate | None
    any: Estimate | None
    graded: bool
    """Whether its scores say more than right or wrong."""
    failed: int
    truncated: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two experiments on the same queries."""

    figure: str
    """`score` (the mean of a query's candidates), `rate` (the share of them verified), `first` (candidate verified),
    `pass@k`, or `metric …`."""
    split: str
    """`all`, a split, or a value of the column that was asked for."""
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
    """A query that most candidates got right in one experiment and most got wrong in the other.

    Where nobody said which scores pass, one of those whose mean score changed most.
    """

    split: str
    query_id: str
    gained: bool
    """Whether the other experiment is the one that got it right."""
    baseline: str
    """Such as `3/4`, or a mean score."""
    other: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two experiments on the queries they have in common."""

    baseline: str
    other: str
    common: int
    """Queries that are the same in both, and have a verdict in both. 0: nothing can be compared."""
    only_baseline: int
    """Queries whose id only the baseline has."""
    only_other: int
    samples: SharedSamples
    """What became of the queries whose id both have."""
    differences: tuple[Difference, ...]
    gained: int
    """Queries that flipped from mostly wrong to mostly right."""
    lost: int
    flips: tuple[Flip, ...]
    """The largest of them."""
    graded: bool = False
    """Whether mean scores say more than which answers are right."""
    has_passes: bool = True
    """Whether both say which answers are right."""
    judged_differently: tuple[str, ...] = ()
    """The settings in which their rewards differ, such as `reward.source`: then neither is better than the other."""

    def difference(self, figure: str, split: str = "all") -> Difference | None:
        """The difference in one figure."""
        found = (one for one in self.differences if (one.figure, one.split) == (figure, split))
        return next(found, None)

    @property
    def main_figure(self) -> str:
        """What decides which is better: the mean score where scores are graded, else the share that is verified."""
        return "score" if self.graded or not self.has_passes else "rate"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several experiments; each is paired with the first."""

    experiments: tuple[SideBySide, ...]
    pairings: tuple[Pairing, ...]

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON."""
        return asdict(self)


def compare(*sources: ResultsLike, examples: int = 5) -> RunComparison:
    """Put experiments side by side and pair each with the first, on the queries they have in common."""
    if len(sources) < len(("baseline", "other")):
        raise ValueError("one experiment cannot be compared; give two or more")
    experiments = [load(source) for source in sources]
    pairings = [_pair(experiments[0], other, examples) for other in experiments[1:]]
    return RunComparison(tuple(map(_in_a_line, experiments)), tuple(pairings))


def _in_a_line(experiment: JudgedAnswers) -> SideBySide:
    judged, verified, known = experiment.judged, experiment.verified, experiment.has_passes
    cost = experiment.numbers("cost")
    return SideBySide(
        name=experiment.name,
        models=models_of(experiment),
        candidates=int(experiment.sizes.max()),
        queries=experiment.queries,
        records=experiment.records,
        mean=query_scores(experiment).mean(),
        rate=rate_of_rows(judged, verified) if known else None,
        first=mean_of_queries(first_candidate(experiment)) if known else None,
        any=any_rate(judged, verified) if known else None,
        graded=experiment.graded,
        failed=experiment.records - int(judged.sum()),
        truncated=int(cut_off(experiment).sum()),
        cost=None if cost is None else float(np.nansum(cost)),
    )


def common_queries(baseline: JudgedAnswers, other: JudgedAnswers) -> tuple[Integers, Integers]:
    """The queries that are the same and judged in both: the numbers that the one and the other have for them."""
    left, right, _ = same_samples(baseline, other)
    judged = (baseline.judged[left] > 0) & (other.judged[right] > 0)
    return left[judged], right[judged]


def _pair(baseline: JudgedAnswers, other: JudgedAnswers, examples: int) -> Pairing:
    left, right = common_queries(baseline, other)
    has_passes = baseline.has_passes and other.has_passes
    crossed = _crossed(baseline, other, left, right) if has_passes else np.zeros(0, dtype=np.int64)
    change = _change(baseline, other, left, right, passes=has_passes)
    shown = crossed if has_passes else np.flatnonzero(change)
    shown = shown[np.argsort(-np.abs(change[shown]), kind="stable")[:examples]]
    gained = change[crossed] > 0
    samples = same_samples(baseline, other).shared
    return Pairing(
        baseline=baseline.name,
        other=other.name,
        common=len(left),
        only_baseline=baseline.queries - samples.shared,
        only_other=other.queries - samples.shared,
        samples=samples,
        differences=tuple(_differences(baseline, other, left, right) if len(left) else []),
        gained=int(gained.sum()),
        lost=int((~gained).sum()),
        flips=tuple(_shown(baseline, other, left[shown], right[shown], passes=has_passes)),
        graded=baseline.graded or other.graded,
        has_passes=has_passes,
        judged_differently=_judged_differently(baseline, other, left, right),
    )


def _judged_differently(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers
) -> tuple[str, ...]:
    """The settings in which what judged the pairs differs; none where it is the same, or one of them does not tell."""
    one, two = baseline.judging, other.judging
    names: dict[str, None] = {}
    if one.settings is not None and two.settings is not None:
        for mine_at, theirs_at in {*zip(baseline.query_split[left], other.query_split[right], strict=True)}:
            mine = _of_split(one.settings, baseline.splits[mine_at])
            theirs = _of_split(two.settings, other.splits[theirs_at])
            names |= dict.fromkeys(n for n in dict.fromkeys((*mine, *theirs)) if mine.get(n) != theirs.get(n))
    elif one.settings is None and two.settings is None and None not in (one.digest, two.digest):
        # Two tables of before, which tell no settings. A run's digest is made of other things than a table's.
        names = {"reward": None} if one.digest != two.digest else {}
    if (baseline.graded or other.graded) and _limits(one) != _limits(two) and one.thresholds and two.thresholds:
        names["reward.pass_threshold"] = None
    return tuple(names)


def _of_split(settings: Mapping[str, Any], split: str) -> dict[str, Any]:
    """What judged a split: its own reward where it has one, else the one of all others."""
    own = f"{split}."
    found = {name.removeprefix(own): value for name, value in settings.items() if name.startswith(own)}
    return found or {name: value for name, value in settings.items() if name.startswith(_OF_A_REWARD)}


_OF_A_REWARD = ("reward.", "sandbox.", "judge.", "world.")
"""How the names of a reward's settings begin (`scoring/identity.py`); those of a split stand behind its name."""


def _limits(judging: Judging) -> tuple[float, dict[str, float]] | None:
    limits = judging.thresholds
    return None if limits is None else (limits.whole, {k: v for k, v in limits.by_split.items() if v != limits.whole})


def _differences(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> list[Difference]:
    figures = dict(_figures(baseline, other, left, right))
    groups = baseline.group_of_query[left]
    parts: list[tuple[str, NDArray[np.bool_]]] = [("all", np.ones(len(left), dtype=np.bool_))]
    present = np.unique(groups)
    if len(present) > 1:
        parts += [(baseline.groups[group], groups == group) for group in present.tolist()]
    found = (
        _difference(figure, group, before[chosen], after[chosen])
        for group, chosen in parts
        for figure, (before, after) in figures.items()
    )
    return [difference for difference in found if difference is not None]


def _figures(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers
) -> Iterator[tuple[str, tuple[Numbers, Numbers]]]:
    """What is compared: a value per common query, before and after."""
    graded, has_passes = baseline.graded or other.graded, baseline.has_passes and other.has_passes
    if graded or not has_passes:
        yield "score", (_means(baseline)[left], _means(other)[right])
    if has_passes:
        yield "rate", (_rate(baseline, left), _rate(other, right))
        yield "first", (first_candidate(baseline)[left], first_candidate(other)[right])
        k = int(np.quantile(np.minimum(baseline.judged[left], other.judged[right]), _FEW, method="lower"))
        if k > 1:
            yield f"pass@{k}", (_pass(baseline, left, k), _pass(other, right, k))
    before, after = metric_scores(baseline), metric_scores(other)
    for name in (name for name in before if name in after):
        yield f"metric {name}", (before[name].of_query()[left], after[name].of_query()[right])


def _means(experiment: JudgedAnswers) -> Numbers:
    return query_scores(experiment).of_query()


def _rate(experiment: JudgedAnswers, queries: Integers) -> Numbers:
    return experiment.verified[queries] / experiment.judged[queries]


def _change(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers, *, passes: bool) -> Numbers:
    """By how much each common query is better: in the share that is verified, or in mean score."""
    if passes:
        return _rate(other, right) - _rate(baseline, left)
    return np.nan_to_num(_means(other)[right] - _means(baseline)[left])


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
    # The estimator is for values between 0 and 1: others are compared on the scale on which theirs are.
    scale = max(1.0, float(max(before.max(), after.max()) - min(0.0, float(before.min()), float(after.min()))))
    found = _scaled(change / scale, scale)
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


def _scaled(change: Numbers, scale: float) -> PairedDifference:
    total, squares, absolute = float(change.sum()), dot(change, change), float(np.abs(change).sum())
    value, low, high, p = paired_difference(total, squares, samples=len(change), absolute=absolute)
    return PairedDifference(value * scale, low * scale, high * scale, p)


def _crossed(baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers) -> Integers:
    """Which common queries crossed the half."""
    before, after = _rate(baseline, left) - 0.5, _rate(other, right) - 0.5
    return np.flatnonzero(before * after < 0)


def _shown(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers, *, passes: bool
) -> list[Flip]:
    lines = zip(query_lines(baseline, left), query_lines(other, right), strict=True)
    return [
        Flip(
            split=before.split,
            query_id=before.query_id,
            gained=_value(after, passes=passes) > _value(before, passes=passes),
            baseline=_in_words(before, passes=passes),
            other=_in_words(after, passes=passes),
            excerpt=before.excerpt or after.excerpt,
        )
        for before, after in lines
    ]


def _value(line: QueryLine, *, passes: bool) -> float:
    return line.verified / line.judged if passes or line.mean_score is None else line.mean_score


def _in_words(line: QueryLine, *, passes: bool) -> str:
    return f"{line.verified}/{line.judged}" if passes else f"{_value(line, passes=passes):.3g}"
