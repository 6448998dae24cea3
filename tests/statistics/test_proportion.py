# SPDX-License-Identifier: Apache-2.0
"""Wilson's interval against its definition, and the clustered one by simulation: both must hold what they promise."""

from __future__ import annotations

import random
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import (
    ClusteredMean,
    clustered_proportion_interval,
    normal_quantile,
    proportion_interval,
    wilson_interval,
)

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


# ── clusters ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 10_000).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_arcsine_interval_holds_the_share_and_is_symmetric(case: tuple[int, int]) -> None:
    successes, trials = case
    share = successes / trials
    low, high = proportion_interval(share, trials)
    assert 0 <= low <= share <= high <= 1
    assert low < high
    assert proportion_interval(1 - share, trials) == pytest.approx((1 - high, 1 - low))
    wider = proportion_interval(share, trials / 2)
    assert wider.high - wider.low > high - low
    assert (low, high) == pytest.approx(wilson_interval(successes, trials), abs=0.3 / trials**0.5)


@pytest.mark.parametrize(("share", "trials"), [(-0.1, 10), (1.1, 10), (0.5, 0)])
def test_an_impossible_share_is_refused(share: float, trials: float) -> None:
    with pytest.raises(ValueError, match="trials"):
        proportion_interval(share, trials)


def test_answers_that_agree_count_once_and_independent_ones_each() -> None:
    alike = sqrt(0.25 / 100)
    assert clustered_proportion_interval(
        0.5, alike, clusters=100, least_share=1 / 8, minority=50
    ) == proportion_interval(0.5, 100)
    independent = clustered_proportion_interval(
        0.5, sqrt(0.25 / 80_000), clusters=10_000, least_share=1 / 8, minority=9_000
    )
    assert independent == pytest.approx(proportion_interval(0.5, 80_000), abs=1e-5)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_without_the_other_outcome_each_cluster_is_one_trial(mean: float) -> None:
    found = clustered_proportion_interval(mean, 0.0, clusters=20, least_share=1 / 16, minority=0)
    assert found == proportion_interval(mean, 20)
    one = clustered_proportion_interval(0.75, inf, clusters=1, least_share=1 / 4, minority=1)
    assert one == proportion_interval(0.75, 1)


@given(st.integers(5, 200), st.integers(1, 16))
def test_one_success_more_moves_the_interval_a_little(queries: int, size: int) -> None:
    """There is no seam between nothing and almost nothing: ends move by less than the interval is wide."""
    intervals = []
    for successes in range(3):
        mean = ClusteredMean()
        for number in range(queries):
            mean.add([1.0 if number == place and number < successes else 0.0 for place in range(size)])
        estimate = mean.estimate()
        assert estimate is not None
        intervals.append((estimate.low, estimate.high))
    (_, none), (low, one), _ = intervals
    assert low < none
    assert one > none / 5
    assert intervals == sorted(intervals, key=lambda ends: ends[0])


@pytest.mark.parametrize(
    ("queries", "size", "rate", "alike"),
    [
        (20, 1, 0.5, 0.0),
        (20, 8, 0.3, 0.3),
        (50, 4, 0.9, 0.6),
        (50, 16, 0.1, 0.1),
        (150, 2, 0.05, 0.3),
        (150, 8, 0.97, 0.5),
    ],
)
def test_it_holds_the_truth_as_often_as_it_says(queries: int, size: int, rate: float, alike: float) -> None:
    """Each query has a chance of its own, so that its answers are `alike`; 93 to 97 in a hundred, give or take."""
    draw = random.Random(f"{queries} {size} {rate} {alike}")
    trials, held = 1_000, 0
    for _ in range(trials):
        held += _holds(draw, queries, size, rate, alike)
    noise = 2.6 * sqrt(0.95 * 0.05 / trials)
    assert 0.93 - noise <= held / trials <= 0.97 + noise


def _holds(draw: random.Random, queries: int, size: int, rate: float, alike: float) -> bool:
    mean = ClusteredMean()
    for _ in range(queries):
        chance = rate
        if alike:
            chance = draw.betavariate(rate * (1 / alike - 1), (1 - rate) * (1 / alike - 1))
        mean.add([float(draw.random() < chance) for _ in range(size)])
    estimate = mean.estimate()
    assert estimate is not None
    return estimate.low <= rate <= estimate.high
