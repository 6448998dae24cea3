# SPDX-License-Identifier: Apache-2.0
"""Ways of picking a candidate, each query on its own against its definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import load
from reward_kit.analysis.rates import any_rate
from reward_kit.analysis.selection import best_by_score, first_candidate, scores_are_verdicts
from reward_kit.statistics import best_of_k
from tests.analysis.experiments import rows_of, table, table_of

candidates = st.tuples(st.sampled_from("10."), st.sampled_from([0.0, 0.5, 0.7, None]))
queries = st.lists(st.lists(candidates, min_size=1, max_size=6), min_size=1, max_size=8)


def test_the_first_is_candidate_zero_and_no_other() -> None:
    rows = [
        row
        for row in rows_of({"a": "10", "b": "01", "c": ".1", "d": "01"})
        if row["query_id"] != "d" or row["candidate_idx"]
    ]
    assert first_candidate(load(table_of(rows))).tolist() == pytest.approx([1, 0, np.nan, np.nan], nan_ok=True)


def test_an_oracle_finds_what_is_there() -> None:
    experiment = load(table({"a": "001", "b": "000", "c": "..", "d": ".1"}))
    found = any_rate(experiment.judged, experiment.verified)
    assert found is not None
    assert found.value == pytest.approx(2 / 3)
    assert found.count == 3


@given(queries)
def test_picking_by_score_is_exact_for_each_query_and_k(drawn: list[list[tuple[str, float | None]]]) -> None:
    rows = [
        row | {"score": score}
        for number, query in enumerate(drawn)
        for row, (_, score) in zip(rows_of({str(number): "".join(mark for mark, _ in query)}), query, strict=True)
    ]
    experiment = load(table_of(rows))
    picks = best_by_score(experiment, range(1, 7))
    if picks is None:
        assert all(score is None for query in drawn for _, score in query)
        return
    for number, k in product(range(len(drawn)), range(1, 7)):
        usable = [(score, int(mark)) for mark, score in drawn[number] if mark != "." and score is not None]
        scores, correct = [score for score, _ in usable], [right for _, right in usable]
        expected = best_of_k(scores, correct, k) if len(usable) >= k else np.nan
        assert picks.at[k][number] == pytest.approx(expected, nan_ok=True)
        if len(usable) == k:
            assert picks.of_all[number] == pytest.approx(expected)


def test_scores_that_only_repeat_the_verdict_are_noticed() -> None:
    assert scores_are_verdicts(load(table({"a": "10.", "b": "11"})))
    graded = table({"a": "10", "b": "11"}, score=lambda _, index, verdict: float(verdict) - index / 10)
    assert not scores_are_verdicts(load(graded))
    assert not scores_are_verdicts(load(table({"a": ".."})))
