# SPDX-License-Identifier: Apache-2.0
"""The majority vote: candidates that give the same answer form a group, and the largest group speaks for the query.

One rule, whatever file the answers stand in. Where the right answer to a query is a number or a formula, the final
answer that a text states is what counts, and two are one when `rewards.math.answers_match` says so. Otherwise two
answers are one when their texts are equal but for space and reasoning (and, where they are JSON, but for the order of
keys). Reading and comparing answers costs far more than counting verdicts, so large experiments are voted on by a
sample of their queries, and the interval says what that leaves open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reward_kit.analysis.judged_answers import NOT_JUDGED, Integers, JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.analysis.rates import mean_of_queries
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.statistics import Estimate, majority_at_k
from reward_kit.utils import exact_json

__all__ = ["Ballot", "Votes", "collect_votes", "is_mathematical", "majority_rate"]

_MARKS = ("####", "\\boxed", "<answer>")
"""Where a right answer comes with its derivation, one of these says where it is."""
_LONGEST_TRUTH = 500
_MATHEMATICS = re.compile(r"[\d\\^=√π∞]")
"""What a number or formula has; words that happen to read like products of variables have not."""

ENOUGH_ANSWERS = 8_000
"""Answers that are read for a vote, unless more are asked for."""


_FEW_ENOUGH = 16
"""Candidates of a query up to which every possible vote is counted; the ways to divide them grow beyond all measure."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """The groups of equal answers to one query."""

    counts: tuple[int, ...]
    """How many candidates are in each group."""
    correct: tuple[float, ...]
    """The share of each group that was verified."""


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes on an experiment, or on a sample of its queries."""

    queries: Integers
    """The queries voted on."""
    ballots: list[Ballot]
    """One a query."""
    whole: bool
    """Whether every judged query was voted on."""

    def rate(self, k: int | None = None, queries: Integers | None = None) -> Estimate | None:
        """How often the majority of k candidates is right (of all candidates unless told); ties are drawn by lot.

        None where there are too many candidates to go through every choice of k of them.
        """
        chosen = self.ballots
        if queries is not None:
            wanted = set(queries.tolist())
            chosen = [
                ballot for query, ballot in zip(self.queries.tolist(), self.ballots, strict=True) if query in wanted
            ]
        sizes = [sum(ballot.counts) for ballot in chosen]
        able = [(ballot, size) for ballot, size in zip(chosen, sizes, strict=True) if k is None or size >= k]
        if k not in (None, 1) and any(size > _FEW_ENOUGH and size != k for _, size in able):
            return None
        values = [majority_at_k(ballot.counts, ballot.correct, size if k is None else k) for ballot, size in able]
        return mean_of_queries(np.array(values), np.array([size for _, size in able], dtype=np.int64), k)


def majority_rate(source: ResultsLike, *, limit: int | None = ENOUGH_ANSWERS) -> Estimate | None:
    """How often the majority vote is right; `limit` is how many answers are read at most, None for all of them."""
    return collect_votes(load(source), limit=limit).rate()


def collect_votes(experiment: JudgedAnswers, *, limit: int | None = ENOUGH_ANSWERS) -> Votes:
    """Read and group the answers of the queries that are voted on."""
    queries = _chosen(experiment, limit)
    whole = len(queries) == np.count_nonzero(experiment.judged)
    if not len(queries):
        return Votes(queries, [], whole)
    rows = np.concatenate([np.arange(experiment.starts[query], experiment.starts[query + 1]) for query in queries])
    rows = rows[experiment.verdict[rows] != NOT_JUDGED]
    texts = experiment.texts.take(["response", "tool_calls"], experiment.source_rows[rows])
    of_query = experiment.query_of_row[rows]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(of_query)) + 1, [len(rows)]])
    firsts = experiment.source_rows[rows[bounds[:-1]]]
    truths = experiment.texts.take(["ground_truth"], firsts).get("ground_truth", [None] * len(firsts))
    answers_given = _given(texts)
    ballots = []
    for start, end, truth in zip(bounds[:-1].tolist(), bounds[1:].tolist(), truths, strict=True):
        answers, verdicts = answers_given[start:end], experiment.verdict[rows[start:end]].tolist()
        ballots.append(_ballot(answers, verdicts, mathematical=is_mathematical(truth)))
    return Votes(queries, ballots, whole)


def _given(texts: dict[str, list[Any]]) -> list[Any]:
    """The answers: the tool calls of those that made any, the text of the others."""
    calls = texts.get("tool_calls", [None] * len(texts["response"]))
    return [call if call else response for call, response in zip(calls, texts["response"], strict=True)]


def _chosen(experiment: JudgedAnswers, limit: int | None) -> Integers:
    """The queries to vote on, by chance but always the same, from parts of the source that are cheap to read."""
    votable = experiment.judged > 0
    ranges = experiment.texts.affordable("response") if limit is not None else [(0, experiment.records)]
    if limit is None and not experiment.texts.affordable("response"):
        ranges = []
    if sum(end - start for start, end in ranges) < experiment.records:
        votable &= _inside(experiment, ranges)
    able = np.flatnonzero(votable)
    if limit is None or not len(able) or int(experiment.judged[able].sum()) <= limit:
        return able
    count = max(1, int(limit / experiment.judged[able].mean()))
    return np.sort(np.random.default_rng(0).choice(able, size=min(count, len(able)), replace=False))


def _inside(experiment: JudgedAnswers, ranges: Iterable[tuple[int, int]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which queries have all their rows in these ranges of the source."""
    readable = np.zeros(int(experiment.source_rows.max()) + 1, dtype=np.bool_)
    for start, end in ranges:
        readable[start:end] = True
    whole: np.ndarray[Any, np.dtype[np.bool_]] = np.logical_and.reduceat(
        readable[experiment.source_rows], experiment.starts[:-1]
    )
    return whole


def is_mathematical(truth: object) -> bool:
    """Whether a right answer is a number or a formula, so that others are compared with each other as such."""
    if not isinstance(truth, str):
        return isinstance(truth, int | float) and not isinstance(truth, bool)
    from reward_kit.answers.final_answer import (
        stated_answer,
    )  # here, because reading what answers mean loads much, and only the vote needs it
    from reward_kit.mathematics.equivalence import readable

    marked = stated_answer(truth) if any(mark in truth for mark in _MARKS) else None
    text = (truth if marked is None else marked.text).strip()
    if not text or len(text) > _LONGEST_TRUTH or '"' in text:
        return False
    return _MATHEMATICS.search(text) is not None and readable(text)


def _ballot(answers: list[Any], verdicts: list[int], *, mathematical: bool) -> Ballot:
    """Group the answers; an answer that was verified and one that was not are never the same."""
    from reward_kit.rewards.math import answers_match

    read, same = (_final_answer, answers_match) if mathematical else (_normalised, _never)
    tally: dict[tuple[str, int], int] = {}
    for answer, verdict in zip(answers, verdicts, strict=True):
        # Each verified answer of a mathematics problem equals the right one, and so each other.
        key = ("" if mathematical and verdict else read(answer), verdict)
        tally[key] = tally.get(key, 0) + 1
    groups: dict[tuple[str, int], int] = {}
    for (text, verdict), count in tally.items():
        known = (key for key in groups if key[1] == verdict and verdict == 0 and same(key[0], text) is True)
        key = next(known, (text, verdict))
        groups[key] = groups.get(key, 0) + count
    return Ballot(tuple(groups.values()), tuple(float(verdict) for _, verdict in groups))


def _never(_: str, __: str) -> bool | None:
    return False


def _final_answer(response: Any) -> str:
    from reward_kit.answers.final_answer import stated_answer

    text = _as_text(response)
    found = stated_answer(text)
    return text.strip()[-200:] if found is None else found.text


def _normalised(response: Any) -> str:
    """The response without reasoning and space, JSON in one form."""
    text = without_reasoning(_as_text(response)).strip()
    if text[:1] in ("{", "["):
        try:
            return json.dumps(exact_json.loads(text), sort_keys=True, ensure_ascii=False)
        except exact_json.JSONDecodeError:
            pass
    return " ".join(text.split())


def _as_text(response: Any) -> str:
    return response if isinstance(response, str) else "" if response is None else exact_json.dumps(response).decode()
