# SPDX-License-Identifier: Apache-2.0
"""pass@k against counting every possible choice of k answers."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import (
    Estimate,
    PassAtK,
    pass_at_k,
    pass_hat_k,
    proportion_interval,
)

sizes = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
samples = st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(sizes)
def test_it_is_the_share_of_all_choices(case: tuple[int, int, int]) -> None:
    n, c, k = case
    choices = list(combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == float(Fraction(sum(map(max, choices)), len(choices)))
    assert pass_hat_k(n, c, k) == float(Fraction(sum(map(min, choices)), len(choices)))


def test_it_is_unbiased_where_the_plug_in_is_not() -> None:
    """Over every outcome of n = 6 fair draws, the mean is exactly the chance that one of k = 3 is right."""
    share = Fraction(1, 3)
    outcomes = [
        (sum(right), share ** sum(right) * (1 - share) ** (6 - sum(right)))
        for right in ([int(digit) for digit in f"{number:06b}"] for number in range(64))
    ]
    truth = float(1 - (1 - share) ** 3)
    assert sum(pass_at_k(6, c, 3) * float(chance) for c, chance in outcomes) == pytest.approx(truth, abs=1e-12)
    plug_in = sum((1 - (1 - c / 6) ** 3) * float(chance) for c, chance in outcomes)
    assert abs(plug_in - truth) > 0.01


def test_large_numbers_are_exact() -> None:
    assert pass_at_k(10_000, 1, 5_000) == 0.5
    assert pass_at_k(100_000, 100_000, 100_000) == 1.0
    assert pass_at_k(1_000, 1, 1) == 0.001


@pytest.mark.parametrize(("n", "c", "k"), [(5, 6, 1), (5, -1, 1), (5, 2, 0), (5, 2, 6), (0, 0, 1)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="between"):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match="between"):
        pass_hat_k(n, c, k)


@given(st.lists(samples, max_size=40), st.integers(1, 12))
def test_the_mean_is_that_of_the_samples_that_have_k_answers(counts: list[tuple[int, int]], k: int) -> None:
    streamed = PassAtK(12)
    for n, c in counts:
        streamed.add(n, c)
    values = [pass_at_k(n, c, k) for n, c in counts if n >= k]
    estimate = streamed.estimate(k)
    if not values:
        assert estimate is None
        return
    assert estimate is not None
    mean = sum(values) / len(values)
    assert estimate.value == pytest.approx(mean)
    assert estimate.count == len(values)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high


def test_samples_that_all_pass_leave_room_for_doubt() -> None:
    passes = PassAtK(4)
    for _ in range(10):
        passes.add(4, 4)
    low, high = proportion_interval(1, 10)
    assert passes.estimates() == {k: Estimate(1.0, low, high, 10) for k in (1, 2, 3, 4)}


@given(st.integers(2, 16).flatmap(lambda n: st.lists(st.integers(0, n).map(lambda c: (n, c)), min_size=1, max_size=30)))
def test_bands_rise_with_k_as_the_estimate_does(counts: list[tuple[int, int]]) -> None:
    passes = PassAtK(counts[0][0])
    for n, c in counts:
        passes.add(n, c)
    found = list(passes.estimates().values())
    hats = [hat for k in range(1, passes.k_max + 1) if (hat := passes.estimate_hat(k)) is not None]
    for rising in (found, hats[::-1]):
        for one, next_one in pairwise(rising):
            assert one.low <= next_one.low + 1e-12
            assert one.high <= next_one.high + 1e-12
            assert one.low <= one.value <= one.high


@given(st.lists(st.integers(0, 8), min_size=1, max_size=30), st.integers(1, 8))
def test_each_being_right_mirrors_any_being_right(rights: list[int], k: int) -> None:
    passes, failures = PassAtK(8), PassAtK(8)
    for right in rights:
        passes.add(8, right)
        failures.add(8, 8 - right)
    each, some = passes.estimate_hat(k), failures.estimate(k)
    assert each is not None
    assert some is not None
    assert (each.value, each.low, each.high) == pytest.approx((1 - some.value, 1 - some.high, 1 - some.low))


def test_bands_do_not_jump_where_the_last_doubt_goes() -> None:
    """Eight of sixteen right everywhere: from k = 9 on nothing fails any more, and that makes nothing less sure."""
    passes = PassAtK(16)
    passes.add(16, 8, 20)
    found = passes.estimates()
    for one, next_one in pairwise(found.values()):
        assert 0 <= next_one.low - one.low <= next_one.value - one.value + 0.02
    assert found[9].low == found[8].low > 0.9


def test_there_is_an_estimate_for_each_k_that_some_sample_reaches() -> None:
    passes = PassAtK(8)
    assert passes.estimates() == {}
    passes.add(0, 0)
    passes.add(3, 1)
    passes.add(2, 1)
    assert {k: estimate.count for k, estimate in passes.estimates().items()} == {1: 2, 2: 2, 3: 1}


@given(st.lists(samples, min_size=1, max_size=20), st.integers(2, 12))
def test_what_another_answer_adds_is_the_difference_of_the_same_samples(counts: list[tuple[int, int]], k: int) -> None:
    passes = PassAtK(12)
    for n, c in counts:
        passes.add(n, c)
    able = [(n, c) for n, c in counts if n >= k]
    gain, gain_of_two = passes.gain(k), passes.gain(k, max(0, k - 2))
    if not able:
        assert gain is gain_of_two is None
        return
    assert gain is not None
    assert gain_of_two is not None
    assert gain.value == pytest.approx(sum(pass_at_k(n, c, k) - pass_at_k(n, c, k - 1) for n, c in able) / len(able))
    assert 0 <= gain.low <= gain.value <= gain_of_two.value <= gain_of_two.high <= 1


def test_samples_counted_at_once_are_samples_counted_one_by_one() -> None:
    one_by_one, at_once = PassAtK(3), PassAtK(3)
    for _ in range(5):
        one_by_one.add(3, 2)
    at_once.add(3, 2, 5)
    assert one_by_one.estimates() == at_once.estimates()
    assert one_by_one.estimate_hat(2) == at_once.estimate_hat(2)
    assert one_by_one.gain(1) == one_by_one.estimate(1)
    with pytest.raises(ValueError, match="fewer"):
        at_once.gain(2, 2)


def test_an_impossible_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="right answers"):
        PassAtK(4).add(3, 4)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Samples of different difficulty, 4 answers each; the truth is the mean over difficulties of 1 - (1 - p)²."""
    draw = random.Random(3)
    truth = sum(1 - (1 - p / 20) ** 2 for p in range(21)) / 21
    held = 0
    for _ in range(400):
        passes = PassAtK(2)
        for _ in range(30):
            p = draw.randrange(21) / 20
            passes.add(4, sum(draw.random() < p for _ in range(4)))
        estimate = passes.estimate(2)
        assert estimate is not None
        held += estimate.low <= truth <= estimate.high
    assert 0.91 <= held / 400 <= 0.98
