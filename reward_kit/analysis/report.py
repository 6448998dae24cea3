# SPDX-License-Identifier: Apache-2.0
"""Everything `inspect` says of one experiment, as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reward_kit.analysis.coverage import Coverage, coverage
from reward_kit.analysis.figures import FigureMaker, RunFigures, VotePoint
from reward_kit.analysis.hardest import QueryLine, contested_queries, hardest_queries
from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.optimal_n import OptimalN, optimal_n_of
from reward_kit.analysis.pass_curve import CurvePoint, curve_of
from reward_kit.analysis.rates import CandidateRate, candidate_rates
from reward_kit.analysis.scores import ScoreSpread, score_spread
from reward_kit.analysis.spending import Quantiles, spending
from reward_kit.analysis.voting import ENOUGH_ANSWERS, Votes, collect_votes

__all__ = ["NO_PASSES", "Report", "analyse"]

NO_PASSES = "The scores are graded and nobody said which of them pass: --threshold S counts the answers from S on."
"""Why there is no share of right answers and no pass@k."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that `inspect` finds out about one experiment, or one run."""

    name: str
    metadata: Mapping[str, str]
    coverage: Coverage
    overall: RunFigures
    splits: tuple[RunFigures, ...]
    """By split, or by the column that was asked for; none where there is one split."""
    candidates: tuple[CandidateRate, ...]
    """By candidate index: does the first win?"""
    curve: tuple[CurvePoint, ...]
    choosing: tuple[VotePoint, ...]
    """Best-by-score and majority at growing k."""
    optimal: OptimalN | None
    spending: Mapping[str, Quantiles]
    score_spread: ScoreSpread | None
    """How graded scores are spread; None where they are 0 and 1."""
    grouped_by: str
    """What `splits` are told apart by."""
    hardest: tuple[QueryLine, ...]
    contested: tuple[QueryLine, ...]
    never_verified: int
    """Queries without any verified candidate."""
    votes_sampled: int | None
    """How many queries were voted on, where not all were."""
    notes: tuple[str, ...]
    """What a reader should know before believing a figure."""
    episodes: Mapping[str, Any] | None = None
    """Of an agent: turns, tool calls and their errors, how episodes ended, rewards by step; each with its interval."""

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        told = asdict(self) | {"metadata": dict(self.metadata)}
        return told if self.episodes is not None else {name: held for name, held in told.items() if name != "episodes"}


def analyse(
    source: ResultsLike, *, value: float | None = None, examples: int = 5, vote_limit: int | None = ENOUGH_ANSWERS
) -> Report:
    """Work out every figure of an experiment.

    `value` is what a verified answer is worth (see `optimal_n`), `examples` how many queries are shown, `vote_limit`
    how many answers are read for the majority vote (0 for none, None for all).
    """
    experiment = load(source)
    curve = curve_of(experiment) if experiment.has_passes else []
    votes = collect_votes(experiment, limit=vote_limit) if vote_limit != 0 and experiment.has_passes else None
    maker = FigureMaker(experiment, votes)
    return Report(
        name=experiment.name,
        metadata=experiment.metadata,
        coverage=coverage(experiment),
        overall=maker.figures("all"),
        splits=_parts(maker),
        candidates=tuple(candidate_rates(experiment)) if experiment.has_passes else (),
        curve=tuple(curve),
        choosing=maker.choosing(),
        optimal=optimal_n_of(experiment, curve, value=value),
        spending=spending(experiment),
        score_spread=score_spread(experiment.scores) if experiment.graded else None,
        grouped_by="split" if experiment.grouping is None else experiment.grouping.column,
        hardest=tuple(hardest_queries(experiment, examples)),
        contested=tuple(contested_queries(experiment, examples)),
        never_verified=_never_verified(experiment),
        votes_sampled=None if votes is None or votes.whole else len(votes.queries),
        notes=tuple(_notes(experiment, votes, by_verdict=maker.by_verdict)),
        episodes=experiment.episodes,
    )


def _never_verified(experiment: JudgedAnswers) -> int:
    return int(((experiment.judged > 0) & (experiment.verified == 0)).sum()) if experiment.has_passes else 0


def _parts(maker: FigureMaker) -> tuple[RunFigures, ...]:
    """The figures of each group; none where there is but one."""
    experiment = maker.experiment
    if len(experiment.groups) == 1 and experiment.grouping is None:
        return ()
    pairs = zip(experiment.groups, experiment.queries_of_group, strict=True)
    return tuple(maker.figures(group, queries) for group, queries in pairs)


def _notes(experiment: JudgedAnswers, votes: Votes | None, *, by_verdict: bool) -> Iterator[str]:
    if experiment.repeated:
        yield f"{experiment.repeated:,} rows came again for a candidate; the last of them counts."
    if not experiment.has_passes:
        yield NO_PASSES
    elif by_verdict:
        yield "The scores say no more than the verdicts, so best-by-score is the oracle."
    if experiment.episodes is not None and (branches := experiment.episodes.get("branches")):
        yield f"{branches:,} episodes branched off others. They share steps with them, and are in no figure."
    if experiment.judged.sum() < experiment.records:
        yield "Rows that were not judged count neither as right nor as wrong."
    if votes is not None and not votes.whole:
        yield f"The majority vote was worked out on a sample of {len(votes.queries):,} queries."
