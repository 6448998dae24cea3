# SPDX-License-Identifier: Apache-2.0
"""One query with its candidates, to be read side by side."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from reward_kit.analysis.judged_answers import NOT_JUDGED, JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load
from reward_kit.errors import DatasetError
from reward_kit.storage.judged import spoken

__all__ = ["CandidateView", "QueryView", "view_query"]

_LONG = 1_500
"""Characters of an answer that are shown; its end, where the answer is, counts more than its beginning."""


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One answer to the query that is shown, with what was said of it."""

    index: int
    is_verified: bool | None
    score: float | None
    response: str
    reason: str
    error: str
    completion_tokens: float | None
    """Of its request, which may have brought several answers; then they are the first one's."""
    last_of_request: int
    """The last answer that the request brought: this one, where it brought no other."""
    finish_reason: str

    @property
    def heading(self) -> str:
        """The verdict in a line."""
        verdict = {True: "verified", False: "not verified", None: "not judged"}[self.is_verified]
        facts = [f"#{self.index} {verdict}"]
        if self.score is not None:
            facts.append(f"score {self.score:.3g}")
        if self.completion_tokens is not None:
            shared = f" for #{self.index} to #{self.last_of_request}" if self.last_of_request > self.index else ""
            facts.append(f"{self.completion_tokens:,.0f} tokens{shared}")
        if self.finish_reason not in ("", "stop"):
            facts.append(self.finish_reason)
        return " · ".join(facts)

    @property
    def answer_and_reason(self) -> str:
        """The answer, then why it was judged as it was."""
        text = self.response.strip()
        if len(text) > _LONG:
            text = f"{text[: _LONG // 3]}\n… {len(text) - _LONG:,} characters …\n{text[-2 * _LONG // 3 :]}"
        return "\n\n".join(part for part in (text, self.error or self.reason) if part)


@dataclass(frozen=True, slots=True)
class QueryView:
    """A query and its candidates."""

    split: str
    query_id: str
    query: str
    ground_truth: str
    judged: int
    verified: int
    candidates: tuple[CandidateView, ...]


def view_query(source: ResultsLike, query_id: str) -> list[QueryView]:
    """The query of this id, once for each split that has it. The beginning of an id will do if no other shares it."""
    experiment = load(source)
    found = np.flatnonzero(pc.equal(experiment.query_ids, pa.scalar(query_id)).to_numpy(zero_copy_only=False))
    if not len(found):
        found = _beginning(experiment, query_id)
    return [_view(experiment, query) for query in found.tolist()]


def _beginning(experiment: JudgedAnswers, query_id: str) -> Any:
    begins = pc.starts_with(experiment.query_ids, pattern=query_id).to_numpy(zero_copy_only=False)
    found = np.flatnonzero(begins)
    ids = experiment.query_ids.take(found).to_pylist()
    if len(set(ids)) == 1:
        return found
    if ids:
        raise DatasetError(
            f"{len(set(ids)):,} queries of {experiment.name!r} begin with {query_id!r}, such as {ids[0]!r}. "
            "Give more of the id."
        )
    near = get_close_matches(query_id, map(str, experiment.query_ids[:10_000].to_pylist()), n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Its ids look like {experiment.query_ids[0].as_py()!r}."
    raise DatasetError(f"{experiment.name!r} has no query {query_id!r}. {hint}")


def _view(experiment: JudgedAnswers, query: int) -> QueryView:
    where = experiment.rows_of(query)
    rows = np.arange(where.start, where.stop)
    fields = ("query", "ground_truth", "response", "tool_calls", "verification_reason")
    texts = experiment.texts.take(fields, experiment.source_rows[rows])
    split, query_id = experiment.query_name(query)
    return QueryView(
        split=split,
        query_id=query_id,
        query=spoken(_first(texts.get("query"))),
        ground_truth=spoken(_first(texts.get("ground_truth"))),
        judged=int(experiment.judged[query]),
        verified=int(experiment.verified[query]),
        candidates=tuple(_candidate(experiment, int(row), texts, place) for place, row in enumerate(rows)),
    )


def _first(values: list[Any] | None) -> Any:
    return values[0] if values else None


def _candidate(experiment: JudgedAnswers, row: int, texts: dict[str, list[Any]], place: int) -> CandidateView:
    def figure(name: str) -> Any:
        return experiment.figures[name][row].as_py() if name in experiment.figures.column_names else None

    def text(name: str) -> str:
        held = texts[name][place] if name in texts else None
        return held if isinstance(held, str) else "" if held is None else orjson.dumps(held, default=str).decode()

    verdict = int(experiment.verdict[row])
    return CandidateView(
        index=int(experiment.candidate[row]),
        is_verified=None if verdict == NOT_JUDGED else bool(verdict),
        score=figure("score"),
        response="\n".join(part for part in (text("response"), text("tool_calls")) if part),
        reason=text("verification_reason"),
        error=figure("error") or "",
        completion_tokens=figure("completion_tokens"),
        last_of_request=_last_of_request(experiment, row),
        finish_reason=figure("finish_reason") or "",
    )


def _last_of_request(experiment: JudgedAnswers, row: int) -> int:
    """The index of the last answer after `row` whose tokens are counted with those of `row`."""
    figures = experiment.figures
    if "completion_tokens" not in figures.column_names:
        return int(experiment.candidate[row])
    end = int(experiment.starts[np.searchsorted(experiment.starts, row, side="right")])
    tokens = figures["completion_tokens"][row + 1 : end].to_pylist()
    errors = figures["error"][row + 1 : end].to_pylist() if "error" in figures.column_names else [None] * len(tokens)
    shared = takewhile(lambda later: later == (None, None), zip(tokens, errors, strict=True))  # a failure has no tokens
    return int(experiment.candidate[row + len(list(shared))])
