# SPDX-License-Identifier: Apache-2.0
"""The queries worth reading: those that hardly any candidate got right, and those that candidates disagree on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reward_kit.analysis.judged_answers import Integers, JudgedAnswers, Numbers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.scores import query_scores
from reward_kit.analysis.texts import one_line

__all__ = ["QueryLine", "contested_queries", "hardest_queries", "query_lines"]

_EXCERPT = 160
"""Characters of a query that are kept; a terminal shows fewer."""


@dataclass(frozen=True, slots=True)
class QueryLine:
    """A query in one line."""

    split: str
    query_id: str
    judged: int
    verified: int
    excerpt: str
    """How the query begins."""
    mean_score: float | None = None
    """The mean score of its judged candidates, where scores are graded."""


def hardest_queries(source: ResultsLike, count: int = 5) -> list[QueryLine]:
    """The queries with the lowest rates; of equal ones, those that more candidates were judged for.

    Where nobody said which scores pass, those with the lowest mean scores.
    """
    experiment = load(source)
    values = _rates(experiment) if experiment.has_passes else query_scores(experiment).of_query()
    return query_lines(experiment, _lowest(experiment, values, count))


def contested_queries(source: ResultsLike, count: int = 5) -> list[QueryLine]:
    """The queries whose candidates are nearest to being half right, of those that are neither always nor never.

    Where nobody said which scores pass, those whose scores differ most.
    """
    experiment = load(source)
    if not experiment.has_passes:
        variance = query_scores(experiment).variance()
        return query_lines(experiment, _lowest(experiment, np.where(variance > 0, -variance, np.nan), count))
    rates = _rates(experiment)
    distance = np.where((rates > 0) & (rates < 1), np.abs(rates - 0.5), np.nan)
    return query_lines(experiment, _lowest(experiment, distance, count))


def query_lines(experiment: JudgedAnswers, queries: Integers) -> list[QueryLine]:
    """These queries, each in one line."""
    if not len(queries):
        return []
    texts = experiment.texts.take(["query"], experiment.source_rows[experiment.starts[queries]])
    excerpts = texts.get("query", [""] * len(queries))
    return [_line(experiment, query, text) for query, text in zip(queries.tolist(), excerpts, strict=True)]


def _line(experiment: JudgedAnswers, query: int, text: object) -> QueryLine:
    split, query_id = experiment.query_name(query)
    judged, verified = int(experiment.judged[query]), int(experiment.verified[query])
    scores = experiment.scores[experiment.rows_of(query)] if experiment.graded and judged else None
    mean = None if scores is None or np.isnan(scores).all() else float(np.nanmean(scores))
    return QueryLine(split, query_id, judged, verified, one_line(text, _EXCERPT), mean)


def _rates(experiment: JudgedAnswers) -> Numbers:
    with np.errstate(invalid="ignore"):
        return experiment.verified / experiment.judged


def _lowest(experiment: JudgedAnswers, values: Numbers, count: int) -> Integers:
    """The queries with the lowest values; ties by most judged, then by the file's order. NaN is left out."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    able = np.flatnonzero(~np.isnan(values))
    if len(able) > count:
        bound = np.partition(values[able], count - 1)[count - 1]
        able = able[values[able] <= bound]
    order = np.lexsort((able, -experiment.judged[able], values[able]))
    return able[order[:count]]
