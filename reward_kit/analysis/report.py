"""Everything `inspect` says of one experiment, as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reward_kit.analysis.coverage import Coverage, coverage
from reward_kit.analysis.hardest import QueryLine, contested_queries, hardest_queries
from reward_kit.analysis.judged_answers import Integers, JudgedAnswers, Numbers
from reward_kit.analysis.loading import Source, load
from reward_kit.analysis.optimal_n import OptimalN, optimal_n_of
from reward_kit.analysis.pass_curve import CurvePoint, curve_of
from reward_kit.analysis.rates import (
    CandidateRate,
    any_rate,
    candidate_rates,
    mean_of_queries,
    pass_counts,
    rate_of_rows,
)
from reward_kit.analysis.selection import best_by_score, first_candidate, scores_are_verdicts
from reward_kit.analysis.spending import Quantiles, spending
from reward_kit.analysis.voting import ENOUGH_ANSWERS, Votes, collect_votes
from reward_kit.statistics import Estimate

__all__ = ["Report", "SplitFigures", "VotePoint", "analyse"]


@dataclass(frozen=True, slots=True)
class SplitFigures:
    """The rates of a split, or of the whole."""

    split: str
    queries: int
    records: int
    judged: int
    rate: Estimate | None
    """Verified candidates of those judged."""
    first: Estimate | None
    """Queries whose first candidate is verified."""
    any: Estimate | None
    """Queries with at least one verified candidate: what an oracle would reach."""
    best_by_score: Estimate | None
    """Queries whose best-scored candidate is verified."""
    majority: Estimate | None
    """Queries whose majority answer is verified; of a sample of them, where `Report.votes_sampled`."""
    cost: float | None


@dataclass(frozen=True, slots=True)
class VotePoint:
    """What choosing one of k candidates gives, without knowing which is verified."""

    k: int
    best_by_score: Estimate | None
    majority: Estimate | None


@dataclass(frozen=True, slots=True)
class Report:
    """One experiment, inspected."""

    name: str
    metadata: Mapping[str, str]
    coverage: Coverage
    overall: SplitFigures
    splits: tuple[SplitFigures, ...]
    candidates: tuple[CandidateRate, ...]
    """By candidate index: does the first win?"""
    curve: tuple[CurvePoint, ...]
    choosing: tuple[VotePoint, ...]
    """Best-by-score and majority at growing k."""
    optimal: OptimalN | None
    spending: Mapping[str, Quantiles]
    hardest: tuple[QueryLine, ...]
    contested: tuple[QueryLine, ...]
    never_verified: int
    """Queries without any verified candidate."""
    votes_sampled: int | None
    """How many queries were voted on, where not all were."""
    notes: tuple[str, ...]
    """What a reader should know before believing a figure."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return asdict(self) | {"metadata": dict(self.metadata)}


def analyse(
    source: Source, *, value: float | None = None, examples: int = 5, vote_limit: int | None = ENOUGH_ANSWERS
) -> Report:
    """Work out every figure of an experiment.

    `value` is what a verified answer is worth (see `optimal_n`), `examples` how many queries are shown, `vote_limit`
    how many answers are read for the majority vote (0 for none, None for all).
    """
    experiment = load(source)
    curve = curve_of(experiment.judged, experiment.verified)
    votes = collect_votes(experiment, limit=vote_limit) if vote_limit != 0 else None
    chosen = _Chosen(experiment, votes)
    return Report(
        name=experiment.name,
        metadata=experiment.metadata,
        coverage=coverage(experiment),
        overall=chosen.figures("all", slice(None)),
        splits=_split_figures(chosen),
        candidates=tuple(candidate_rates(experiment)),
        curve=tuple(curve),
        choosing=chosen.choosing(),
        optimal=optimal_n_of(experiment, curve, value=value),
        spending=spending(experiment),
        hardest=tuple(hardest_queries(experiment, examples)),
        contested=tuple(contested_queries(experiment, examples)),
        never_verified=int(((experiment.judged > 0) & (experiment.verified == 0)).sum()),
        votes_sampled=None if votes is None or votes.whole else len(votes.queries),
        notes=tuple(chosen.notes()),
    )


class _Chosen:
    """A value a query for each way of picking a candidate."""

    def __init__(self, experiment: JudgedAnswers, votes: Votes | None) -> None:
        self.experiment = experiment
        self.votes = votes
        self.first = first_candidate(experiment)
        self.by_verdict = scores_are_verdicts(experiment)
        most = int(experiment.judged.max(initial=0))
        self.ks = [k for k in (2**power for power in range(most.bit_length())) if k < most] + [most] * (most > 0)
        self.picks = best_by_score(experiment, self.ks)
        self.spent = self._spent()

    def figures(self, split: str, queries: Integers | slice) -> SplitFigures:
        judged, verified = self.experiment.judged[queries], self.experiment.verified[queries]
        answers = int(judged.sum())
        chosen = None if isinstance(queries, slice) else queries
        return SplitFigures(
            split=split,
            queries=len(judged),
            records=int(self.experiment.sizes[queries].sum()),
            judged=answers,
            rate=rate_of_rows(judged, verified),
            first=mean_of_queries(self.first[queries]),
            any=any_rate(judged, verified),
            best_by_score=self._best(judged, verified, queries),
            majority=None if self.votes is None else self.votes.rate(queries=chosen),
            cost=None if self.spent is None else float(self.spent[queries].sum()),
        )

    def choosing(self) -> tuple[VotePoint, ...]:
        return tuple(
            VotePoint(k, self._best_of(k), None if self.votes is None else self.votes.rate(k)) for k in self.ks
        )

    def _best(self, judged: Integers, verified: Integers, queries: Integers | slice) -> Estimate | None:
        if self.picks is None:
            return None
        # The best-scored is then a verified one, if there is any: one figure has one interval.
        return any_rate(judged, verified) if self.by_verdict else mean_of_queries(self.picks.of_all[queries])

    def _best_of(self, k: int) -> Estimate | None:
        if self.picks is None:
            return None
        if self.by_verdict:
            return pass_counts(self.experiment.judged, self.experiment.verified).estimate(k)
        return mean_of_queries(self.picks.at[k], self.picks.sizes, k)

    def _spent(self) -> Numbers | None:
        """What the candidates of each query cost together."""
        cost = self.experiment.numbers("cost")
        return None if cost is None else np.add.reduceat(np.nan_to_num(cost), self.experiment.starts[:-1])

    def notes(self) -> Iterator[str]:
        if self.experiment.repeated:
            yield f"{self.experiment.repeated:,} rows came again for a candidate; the last of them counts."
        if self.by_verdict:
            yield "The scores say no more than the verdicts, so best-by-score is the oracle."
        if self.experiment.judged.sum() < self.experiment.records:
            yield "Rows that were not judged count neither as right nor as wrong."
        if self.votes is not None and not self.votes.whole:
            yield f"The majority vote was worked out on a sample of {len(self.votes.queries):,} queries."


def _split_figures(chosen: _Chosen) -> tuple[SplitFigures, ...]:
    experiment = chosen.experiment
    if len(experiment.splits) == 1:
        return ()
    pairs = zip(experiment.splits, experiment.queries_of_split, strict=True)
    return tuple(chosen.figures(split, queries) for split, queries in pairs)
