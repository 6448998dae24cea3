"""Paired tests against counting every outcome; the interval by what it promises."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import mcnemar, normal_quantile, paired_difference_interval

Z = normal_quantile(0.975)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_share_of_outcomes_at_least_as_uneven(won: int, lost: int) -> None:
    count = won + lost
    uneven = [i for i in range(count + 1) if abs(2 * i - count) >= abs(won - lost)]
    exact = Fraction(sum(comb(count, i) for i in uneven), 2**count)
    just = Fraction(sum(comb(count, i) for i in uneven if abs(2 * i - count) == abs(won - lost)), 2**count)
    found = mcnemar(won, lost)
    assert found.exact_p == pytest.approx(float(exact))
    if won != lost:
        assert found.mid_p == pytest.approx(float(exact - just / 2))
    assert (found.won, found.lost) == (won, lost)
    assert found == mcnemar(lost, won)._replace(won=won, lost=lost)


def test_with_many_disagreements_it_goes_on_where_counting_stopped() -> None:
    counted, taken = mcnemar(540, 460), mcnemar(541, 460)
    assert taken.exact_p == pytest.approx(counted.exact_p, rel=0.1)
    assert taken.exact_p < counted.exact_p
    assert mcnemar(50_000, 50_000).exact_p == 1.0
    assert mcnemar(60_000, 40_000).exact_p < 1e-12


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 3)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 200))
def test_for_single_answers_it_is_the_interval_of_bonett_and_price(won: int, lost: int, tied: int) -> None:
    samples = won + lost + tied
    more, less = (won + 1) / (samples + 2), (lost + 1) / (samples + 2)
    reach = Z * sqrt((more + less - (more - less) ** 2) / (samples + 2))
    low, high = paired_difference_interval(won - lost, won + lost, samples=samples, differing=won + lost)
    mean = (won - lost) / samples
    assert low == pytest.approx(max(-1.0, min(mean, more - less - reach)))
    assert high == pytest.approx(min(1.0, max(mean, more - less + reach)))


@pytest.mark.parametrize(("queries", "differ"), [(20, 0.05), (50, 0.3), (200, 0.1)])
def test_it_holds_the_truth_at_least_as_often_as_it_says(queries: int, differ: float) -> None:
    draw, held = random.Random(queries), 0
    for _ in range(600):
        changes = [draw.choice([1, 1, -1]) if draw.random() < differ else 0 for _ in range(queries)]
        squares = sum(map(abs, changes))
        low, high = paired_difference_interval(sum(changes), squares, samples=queries, differing=squares)
        held += low <= differ / 3 <= high
    assert held / 600 >= 0.93
