# SPDX-License-Identifier: Apache-2.0
"""Rates from items that were drawn with unequal probabilities: unbiased, and covered as often as they say."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import DrawnItem, agreement_beyond_chance, draw_weights, weighted_rate


def test_draws_at_random_weigh_the_same() -> None:
    assert draw_weights([(1 / left, left) for left in (10, 9, 8, 7)], population=10) == [1.0] * 4


def test_a_draw_that_was_likelier_weighs_less() -> None:
    preferred, other = draw_weights([(0.5, 100), (0.005, 99)], population=100)
    assert preferred < 1 < other


@pytest.mark.parametrize("probability, pool", [(0.0, 3), (1.5, 3), (0.5, 0)])
def test_what_is_no_draw_is_refused(probability: float, pool: int) -> None:
    with pytest.raises(ValueError, match="a draw with probability"):
        draw_weights([(probability, pool)], population=10)


@given(
    values=st.lists(st.integers(0, 5), min_size=2, max_size=5),
    likings=st.lists(st.integers(1, 9), min_size=5, max_size=5),
    data=st.data(),
)
def test_the_weighted_mean_is_unbiased_whatever_the_draws_prefer(
    values: list[int], likings: list[int], data: st.DataObject
) -> None:
    """Every order in which M of the N items can be drawn, with its probability: the expectation is the plain mean."""
    draws = data.draw(st.integers(1, len(values)))
    expected = 0.0
    for order in permutations(range(len(values)), draws):
        chance, steps, left = Fraction(1), [], set(range(len(values)))
        for item in order:
            probability = Fraction(likings[item], sum(likings[one] for one in left))
            chance *= probability
            steps.append((float(probability), len(left)))
            left.remove(item)
        weights = draw_weights(steps, len(values))
        expected += float(chance) * sum(w * values[i] for w, i in zip(weights, order, strict=True)) / draws
    assert expected == pytest.approx(sum(values) / len(values))


def test_all_right_is_not_certainty() -> None:
    ten, hundred = (weighted_rate((number, 1.0, True) for number in range(count)) for count in (10, 100))
    assert ten is not None and hundred is not None
    assert (ten.value, ten.high) == (1.0, 1.0)
    assert 0.6 < ten.low < 0.85 < hundred.low < 1


def test_unequal_weights_are_worth_fewer_trials() -> None:
    even = weighted_rate((number, 1.0, number % 2 == 0) for number in range(40))
    uneven = weighted_rate((number, 3.0 if number < 10 else 0.1, number % 2 == 0) for number in range(40))
    assert even is not None and uneven is not None
    assert uneven.high - uneven.low > 1.5 * (even.high - even.low)


def test_answers_of_one_sample_that_go_together_are_worth_one() -> None:
    alone = weighted_rate((number, 1.0, number % 2 == 0) for number in range(20))
    together = weighted_rate((number, 1.0, number % 2 == 0) for number in range(20) for _ in range(4))
    assert alone is not None and together is not None
    assert together.count == 20
    assert together.high - together.low == pytest.approx(alone.high - alone.low, rel=0.05)


def test_nothing_drawn_is_no_rate() -> None:
    assert weighted_rate([]) is None
    assert agreement_beyond_chance([]) is None


def test_kappa_is_cohens() -> None:
    """The example of a textbook: 20 both, 5 only the first, 10 only the second, 15 neither."""
    cells = [(True, True, 20), (True, False, 5), (False, True, 10), (False, False, 15)]
    items = [(one, other) for one, other, count in cells for _ in range(count)]
    found = agreement_beyond_chance(DrawnItem(number, 1.0, *item) for number, item in enumerate(items))
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert -1 <= found.low < 0.2 and 0.55 < found.high <= 1


def test_a_judge_who_always_says_the_same_has_no_kappa() -> None:
    assert agreement_beyond_chance(DrawnItem(number, 1.0, True, True) for number in range(9)) is None


@pytest.mark.parametrize("floor", [1.0, 0.3], ids=["at random", "preferring doubt"])
@pytest.mark.parametrize("faults", [0.0, 0.02, 0.1])
def test_intervals_hold_the_truth(floor: float, faults: float) -> None:
    """`benchmarks/review_coverage.py` has more cases, and more repetitions of each."""
    from benchmarks.review_coverage import Setting, covered

    found = covered(Setting(samples=200, drawn=40, floor=floor, faults=faults), repetitions=150, lot=random.Random(1))
    assert found.keys() == {"right", "precision", "recall", "kappa"}
    for name, share in found.items():
        assert share >= 0.93, name
