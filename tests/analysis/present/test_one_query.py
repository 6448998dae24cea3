# SPDX-License-Identifier: Apache-2.0
"""One query with its candidates: whose tokens are whose."""

from __future__ import annotations

from reward_kit.analysis.present.one_query import view_query
from tests.analysis.experiments import rows_of, table_of


def headings(verdicts: str, tokens: list[int | None]) -> list[str]:
    rows = rows_of({"a": verdicts}, completion_tokens=lambda _, index, __: tokens[index])
    (view,) = view_query(table_of(rows), "a")
    return [candidate.heading for candidate in view.candidates]


def test_tokens_of_a_request_are_not_taken_for_those_of_one_answer() -> None:
    assert headings("110", [318, None, None]) == [
        "#0 verified · score 1 · 318 tokens for #0 to #2", "#1 verified · score 1", "#2 not verified · score 0",
    ]  # fmt: skip


def test_an_answer_that_came_alone_has_its_own_and_a_failed_one_has_none() -> None:
    assert headings("1.0", [7, None, 9]) == [
        "#0 verified · score 1 · 7 tokens", "#1 not judged", "#2 not verified · score 0 · 9 tokens",
    ]  # fmt: skip
