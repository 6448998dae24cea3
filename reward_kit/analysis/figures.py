# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, or of a part of it: the one place that computes them.

`inspect` prints them, and whoever shows a run elsewhere imports them from here, so that all show the same digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reward_kit.analysis.judged_answers import Integers, JudgedAnswers, Numbers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.pass_curve import CurvePoint, curve_of
from reward_kit.analysis.rates import (
    any_rate,
    curve_queries,
    mean_of_queries,
    pass_counts,
    rate_of_rows,
    share_bounds,
)
from reward_kit.analysis.scores import metric_scores, query_scores
from reward_kit.analysis.selection import ScorePicks, best_by_score, first_candidate, scores_are_verdicts
from reward_kit.analysis.voting import Votes
from reward_kit.statistics import Estimate, Interval

__all__ = ["FigureMaker", "RunFigures", "VotePoint", "cut_off", "run_figures"]

CUT_OFF = "length"
"""Why an answer ended that reached the limit of tokens."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, or of a part of it. What nobody can know is None."""

    split: str
    """`all`, or which part it is: a split, or a value of the column that was asked for."""
    queries: int
    records: int
    judged: int
    mean: Estimate | None
    """The mean score of judged answers, its interval over queries."""
    rate: Estimate | None
    """Verified candidates of those judged. This and the next four: None where nobody said from which score on."""
    first: Estimate | None
    """Queries whose first candidate is verified."""
    any: Estimate | None
    """Queries with at least one verified candidate: what an oracle would reach."""
    best_by_score: Estimate | None
    """Queries whose best-scored candidate is verified."""
    majority: Estimate | None
    """Queries whose majority answer is verified; of a sample of them, where `Report.votes_sampled`."""
    pass_at_k: Mapping[int, Estimate] = field(repr=False)
    """At least one of k candidates is verified, for the k of `statistics.ladder`: of the queries of the curve."""
    bounds: Mapping[str, Interval] = field(repr=False)
    """Where answers have no verdict: what `rate`, `first`, `any` and `pass@k` would be of all queries, and `mean` of
    scores that are 0 and 1, if all of these were wrong, and if all were right."""
    metrics: Mapping[str, Estimate]
    """The mean of each thing that was measured beside the score."""
    failed: int
    """Answers that could not be had or not be judged."""
    truncated: int
    """Answers that were cut off at the limit of tokens."""
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class VotePoint:
    """What choosing one of k candidates gives, without knowing which is verified."""

    k: int
    best_by_score: Estimate | None
    majority: Estimate | None


def run_figures(source: ResultsLike) -> RunFigures:
    """The figures of a whole run; `analyse` gives the majority vote, the parts and everything else, too."""
    return FigureMaker(load(source), None).figures("all")


def cut_off(experiment: JudgedAnswers) -> Integers:
    """How many answers to each query were cut off at the limit of tokens."""
    if "finish_reason" not in experiment.figures.column_names:
        return np.zeros(experiment.queries, dtype=np.int64)
    reasons: Any = experiment.figures["finish_reason"]
    if not pa.types.is_dictionary(reasons.type):
        reasons = reasons.dictionary_encode()
    reasons = reasons.unify_dictionaries().combine_chunks()
    names = reasons.dictionary.to_pylist() if len(reasons) else []
    if CUT_OFF not in names:
        return np.zeros(experiment.queries, dtype=np.int64)
    cut = pc.fill_null(reasons.indices, -1).to_numpy() == names.index(CUT_OFF)
    return experiment.per_query(cut)


class FigureMaker:
    """Makes the figures of a run and of its parts, from sums per query that are made once."""

    def __init__(self, experiment: JudgedAnswers, votes: Votes | None) -> None:
        """Sum up each query. Without `votes` there is no majority."""
        self.experiment = experiment
        self.votes = votes if experiment.has_passes else None
        self.scores = query_scores(experiment)
        self.first = first_candidate(experiment)
        most = int(experiment.judged.max(initial=0))
        self._on_curve = curve_queries(experiment.judged)
        most = int(experiment.judged[self._on_curve].min(initial=most))
        self._ks = [k for k in (2**power for power in range(most.bit_length())) if k < most] + [most] * (most > 0)
        self._metrics = metric_scores(experiment)
        self._cut_off = cut_off(experiment)
        self._spent = {name: self._sums(name) for name in ("prompt_tokens", "completion_tokens", "cost")}

    @cached_property
    def by_verdict(self) -> bool:
        """Whether the scores say no more than the verdicts."""
        return scores_are_verdicts(self.experiment)

    @cached_property
    def _picks(self) -> ScorePicks | None:
        return best_by_score(self.experiment, self._ks) if self.experiment.has_passes else None

    def figures(self, part: str, queries: Integers | slice = slice(None)) -> RunFigures:
        """The figures of these queries."""
        judged, verified = self.experiment.judged[queries], self.experiment.verified[queries]
        known = self.experiment.has_passes
        records, answers = int(self.experiment.sizes[queries].sum()), int(judged.sum())
        metrics = {name: scores.mean(queries) for name, scores in self._metrics.items()}
        curve = curve_of(self.experiment, queries) if known else []
        return RunFigures(
            split=part,
            queries=len(judged),
            records=records,
            judged=answers,
            mean=self.scores.mean(queries),
            rate=rate_of_rows(judged, verified) if known else None,
            first=mean_of_queries(self.first[queries]) if known else None,
            any=any_rate(judged, verified) if known else None,
            best_by_score=self._best(judged, verified, queries),
            majority=self._majority(queries),
            pass_at_k={point.k: point.pass_at_k for point in curve},
            bounds=self._bounds(queries, curve) if known else {},
            metrics={name: found for name, found in metrics.items() if found is not None},
            failed=records - answers,
            truncated=int(self._cut_off[queries].sum()),
            prompt_tokens=self._whole("prompt_tokens", queries),
            completion_tokens=self._whole("completion_tokens", queries),
            cost=self._total("cost", queries),
        )

    def _bounds(self, queries: Integers | slice, curve: Sequence[CurvePoint]) -> dict[str, Interval]:
        experiment = self.experiment
        sizes, judged, verified = experiment.sizes[queries], experiment.judged[queries], experiment.verified[queries]
        first, missing = self.first[queries], sizes - judged
        rate = share_bounds(int(verified.sum()), int(missing.sum()), int(sizes.sum()))
        found = {
            "mean": None if experiment.graded else rate,
            "rate": rate,
            "first": share_bounds(float(np.nansum(first)), int(np.isnan(first).sum()), len(first)),
            "any": share_bounds(
                int(np.count_nonzero(verified)), int(np.count_nonzero((verified == 0) & (missing > 0))), len(judged)
            ),
            **{f"pass@{point.k}": point.bounds for point in curve},
        }
        return {name: interval for name, interval in found.items() if interval is not None}

    def choosing(self) -> tuple[VotePoint, ...]:
        """What picking one of k candidates gives, for growing k."""
        if not self.experiment.has_passes:
            return ()
        voters = np.flatnonzero(self._on_curve)
        return tuple(
            VotePoint(k, self._best_of(k), None if self.votes is None else self.votes.rate(k, voters)) for k in self._ks
        )

    def _best(self, judged: Integers, verified: Integers, queries: Integers | slice) -> Estimate | None:
        if self._picks is None:
            return None
        # The best-scored is then a verified one, if there is any: one figure has one interval.
        return any_rate(judged, verified) if self.by_verdict else mean_of_queries(self._picks.of_all[queries])

    def _best_of(self, k: int) -> Estimate | None:
        if self._picks is None:
            return None
        chosen = self._on_curve
        if self.by_verdict:
            return pass_counts(self.experiment.judged[chosen], self.experiment.verified[chosen]).estimate(k)
        return mean_of_queries(self._picks.at[k][chosen], self._picks.sizes[chosen], k)

    def _majority(self, queries: Integers | slice) -> Estimate | None:
        if self.votes is None:
            return None
        return self.votes.rate(queries=None if isinstance(queries, slice) else queries)

    def _sums(self, name: str) -> Numbers | None:
        """What the candidates of each query took together."""
        values = self.experiment.numbers(name)
        if values is None:
            return None
        known = np.nan_to_num(values) if np.isnan(values).any() else values
        return np.add.reduceat(known, self.experiment.starts[:-1])

    def _total(self, name: str, queries: Integers | slice) -> float | None:
        sums = self._spent[name]
        return None if sums is None else float(sums[queries].sum())

    def _whole(self, name: str, queries: Integers | slice) -> int | None:
        total = self._total(name, queries)
        return None if total is None else round(total)
