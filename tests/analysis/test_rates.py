# SPDX-License-Identifier: Apache-2.0
"""Rates of whole experiments, against the estimators that see one query at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import candidate_rates, verification_rates
from reward_kit.analysis.rates import mean_of_queries, rate_of_rows
from reward_kit.statistics import ClusteredMean, PassAtK, proportion_interval
from tests.analysis.experiments import rows_of, simulated, table, table_of

verdicts = st.lists(st.text("10.", min_size=1, max_size=6), min_size=1, max_size=12)


@given(verdicts)
def test_counting_all_at_once_is_counting_one_by_one(queries: list[str]) -> None:
    one_by_one = ClusteredMean()
    for marks in queries:
        one_by_one.add([float(mark) for mark in marks if mark != "."])
    expected = one_by_one.estimate()
    found = verification_rates(table({str(number): marks for number, marks in enumerate(queries)}))["all"]
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.value, found.count) == pytest.approx((expected.value, expected.count))
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_a_value_a_query_is_a_mean_over_queries(counts: list[int]) -> None:
    passes = PassAtK(6)
    for count in counts:
        passes.add(6, count)
    expected = passes.estimate(1)
    assert expected is not None
    found = mean_of_queries(np.array(counts) / 6, np.full(len(counts), 6), 1)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-6
    )


def test_a_value_that_is_not_known_does_not_count() -> None:
    found = mean_of_queries(np.array([1.0, np.nan, 0.0]))
    assert found is not None
    assert (found.value, found.count) == (0.5, 2)
    assert mean_of_queries(np.array([np.nan])) is None
    assert rate_of_rows(np.array([0]), np.array([0])) is None


def test_each_split_has_its_rate_and_what_was_not_judged_has_none() -> None:
    rows = rows_of({"a": "11", "b": "00"}) + rows_of({"a": "1."}, split="code") + rows_of({"z": ".."}, split="chat")
    rates = verification_rates(table_of(rows))
    assert {split: rate and rate.value for split, rate in rates.items()} == {
        "math": 0.5,
        "code": 1.0,
        "chat": None,
        "all": 0.6,
    }


def test_does_the_first_win() -> None:
    found = candidate_rates(table({"a": "10", "b": "1.", "c": "00", "d": "111"}))
    assert [(one.index, one.judged, one.rate and round(one.rate.value, 3)) for one in found] == [
        (0, 4, 0.75), (1, 3, 0.333), (2, 1, 1.0),
    ]  # fmt: skip
    assert found[0].rate is not None
    assert (found[0].rate.low, found[0].rate.high) == proportion_interval(3 / 4, 4)


def test_the_interval_of_an_experiment_holds_the_truth_as_often_as_it_says() -> None:
    held, trials = 0, 300
    for seed in range(trials):
        rate = verification_rates(table(simulated(seed, queries=60, size=6, rate=0.3, alike=0.4, missing=0.1)))["all"]
        assert rate is not None
        held += rate.low <= 0.3 <= rate.high
    assert 0.91 <= held / trials <= 0.99
