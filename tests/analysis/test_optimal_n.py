# SPDX-License-Identifier: Apache-2.0
"""Where another candidate stops paying, worked out by hand."""

from __future__ import annotations

import pytest

from reward_kit.analysis import optimal_n
from tests.analysis.experiments import simulated, table

HALF = {str(number): "10" * 4 for number in range(50)}
"""Every query half right: pass@k is 1 - C(4, k) / C(8, k)."""
GAINS = [0.5, 2 / 7, 1 / 7, 2 / 35, 1 / 70]


def test_without_a_price_the_bar_is_a_tenth_of_the_first() -> None:
    found = optimal_n(table(HALF))
    assert found is not None
    assert (found.n, found.unit, found.per_candidate) == (4, "candidates", 1.0)
    assert found.bar == pytest.approx(0.05)
    assert found.low <= found.n <= found.high
    assert found.reached
    assert [step.added_per_unit.value for step in found.steps[:5]] == pytest.approx(GAINS)
    assert found.steps[1].verified_per_unit == pytest.approx((GAINS[0] + GAINS[1]) / 2)


@pytest.mark.parametrize(("value", "n"), [(0.3, 1), (0.8, 2), (2, 3), (5, 4), (1_000, 5)])
def test_what_an_answer_is_worth_decides(value: float, n: int) -> None:
    """A candidate costs 0.2; the k-th pays while its gain times the value reaches that."""
    found = optimal_n(table(HALF, cost=0.2), value=value)
    assert found is not None
    assert (found.n, found.unit) == (n, "cost")
    assert found.per_candidate == pytest.approx(0.2)


def test_where_the_last_candidate_still_pays_more_may_be_better() -> None:
    found = optimal_n(table({str(number): "100" for number in range(20)}))
    assert found is not None
    assert (found.n, found.reached) == (3, False)


def test_without_money_tokens_are_the_cost_and_a_shared_bill_is_shared() -> None:
    found = optimal_n(table(HALF, completion_tokens=lambda _, index, __: 800 if index == 0 else None))
    assert found is not None
    assert (found.unit, found.per_candidate) == ("completion_tokens", 100)


def test_where_points_are_apart_each_candidate_between_them_must_pay() -> None:
    """Beyond 16 the curve goes in steps of four, which together bring more than the bar: each of them does not."""
    many = table({"a": "10000" * 8})
    every = optimal_n(many)
    assert every is not None
    sixteenth = every.steps[15].added_per_unit.value / every.steps[0].added_per_unit.value
    found = optimal_n(many, worthwhile=sixteenth * 0.999)
    assert found is not None
    assert (found.n, found.reached) == (16, True)


def test_nothing_judged_has_no_optimum() -> None:
    assert optimal_n(table({"a": ".."})) is None


def test_more_queries_narrow_the_range() -> None:
    few, many = (optimal_n(table(simulated(1, queries=queries, size=8))) for queries in (10, 2_000))
    assert few is not None
    assert many is not None
    assert many.high - many.low < few.high - few.low
