# SPDX-License-Identifier: Apache-2.0
"""What comes of picking one candidate per query: the first, the best-scored, or a verified one if there is any.

Each is one value per query, between 0 and 1, NaN where it is not known; `rates.mean_of_queries` makes a rate of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from reward_kit.analysis.judged_answers import NOT_JUDGED, Integers, JudgedAnswers, Numbers
from reward_kit.statistics import rank_weights

__all__ = ["ScorePicks", "best_by_score", "first_candidate", "scores_are_verdicts"]


def first_candidate(experiment: JudgedAnswers) -> Numbers:
    """Whether candidate 0 was verified; NaN where it was not judged."""
    rows = experiment.starts[:-1]
    verdict = experiment.verdict[rows].astype(np.float64)
    verdict[(experiment.candidate[rows] != 0) | (verdict == NOT_JUDGED)] = np.nan
    return verdict


def scores_are_verdicts(experiment: JudgedAnswers) -> bool:
    """Whether the scores say no more than the verdicts, so that the best-scored candidate is the oracle's."""
    scores = experiment.numbers("score")
    if scores is None:
        return False
    judged = experiment.verdict != NOT_JUDGED
    return all(_are_one(scores[experiment.verdict == verdict]) for verdict in (0, 1)) and bool(judged.any())


def _are_one(values: Numbers) -> bool:
    """Whether all values are the same; the first few usually tell."""
    return bool((values[:100] == values[:1]).all() and (values == values[:1]).all())


class ScorePicks(NamedTuple):
    """How likely the best-scored candidate of each query is right."""

    at: dict[int, Numbers]
    """Of k candidates drawn, for queries with at least k."""
    of_all: Numbers
    """Of all the query's candidates."""
    sizes: Integers
    """How many of each query's candidates have a score and a verdict."""


class _Level(NamedTuple):
    """Queries with the same number of scored candidates, as a matrix: a row a query, worst score first."""

    queries: Integers
    correct: Numbers
    """Whether each candidate is right; among equal scores, the share of them that is."""


def best_by_score(experiment: JudgedAnswers, ks: Sequence[int]) -> ScorePicks | None:
    """Pick by score: exact, over every choice of k candidates. None where the experiment has no scores."""
    scores = experiment.numbers("score")
    if scores is None:
        return None
    unknown = np.full(experiment.queries, np.nan)
    picks = ScorePicks({k: unknown.copy() for k in ks}, unknown, np.zeros(experiment.queries, dtype=np.int64))
    for level in _levels(experiment, scores):
        size = level.correct.shape[1]
        picks.of_all[level.queries] = level.correct[:, -1]
        picks.sizes[level.queries] = size
        for k in ks:
            if k <= size:
                picks.at[k][level.queries] = np.einsum("ij,j->i", level.correct, np.array(rank_weights(size, k)))
    return picks


def _levels(experiment: JudgedAnswers, scores: Numbers) -> Iterator[_Level]:
    known = (experiment.verdict != NOT_JUDGED) & ~np.isnan(scores)
    rows, sizes = np.flatnonzero(known), experiment.per_query(known)
    starts = np.cumsum(sizes) - sizes
    for size in np.flatnonzero(np.bincount(sizes))[int(not sizes.min()) :]:
        queries = np.flatnonzero(sizes == size)
        chosen = rows[starts[queries][:, None] + np.arange(size)]
        yield _Level(queries, _ranked(scores[chosen], experiment.verdict[chosen].astype(np.float64)))


def _ranked(scores: Numbers, correct: Numbers) -> Numbers:
    """Put each row's answers in the order of their scores; equal scores share what is right among them."""
    order = np.argsort(scores, axis=1, kind="stable")
    scores, correct = np.take_along_axis(scores, order, 1), np.take_along_axis(correct, order, 1)
    begins = np.ones(scores.shape, dtype=np.bool_)
    begins[:, 1:] = scores[:, 1:] != scores[:, :-1]
    if begins.all():
        return correct
    level = np.cumsum(begins) - 1
    shares: Numbers = np.bincount(level, weights=correct.ravel()) / np.bincount(level)
    return np.reshape(shares[level], correct.shape)
