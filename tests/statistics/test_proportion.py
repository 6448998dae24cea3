"""Wilson's interval against its definition: the shares that a score test would not reject."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import normal_quantile, wilson_interval

Z = normal_quantile(0.975)


@given(st.integers(1, 100_000).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_ends_are_where_the_score_test_just_rejects(case: tuple[int, int]) -> None:
    successes, trials = case
    low, high = wilson_interval(successes, trials)
    share = successes / trials
    assert 0 <= low <= share <= high <= 1
    assert low < high
    for end in (low, high):
        if 0 < end < 1:
            assert abs(share - end) == pytest.approx(Z * sqrt(end * (1 - end) / trials), rel=1e-6)


def test_the_ends_are_exact_at_nothing_and_at_everything() -> None:
    assert wilson_interval(0, 10) == pytest.approx((0.0, Z**2 / (10 + Z**2)), abs=0, rel=1e-12)
    assert wilson_interval(10, 10) == pytest.approx((10 / (10 + Z**2), 1.0), abs=0, rel=1e-12)
    assert (wilson_interval(0, 10).low, wilson_interval(10, 10).high) == (0.0, 1.0)
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.integers(0, 50))
def test_it_is_symmetric(successes: int) -> None:
    low, high = wilson_interval(successes, 50)
    assert wilson_interval(50 - successes, 50) == pytest.approx((1 - high, 1 - low))


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = wilson_interval(5, 10, confidence=0.8), wilson_interval(5, 10, confidence=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10), (1, 0)])
def test_an_impossible_count_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(successes, trials)
