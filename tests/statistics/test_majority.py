# SPDX-License-Identifier: Apache-2.0
"""Majority@k against taking the vote of every possible choice of k answers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import majority_at_k, win_chances

groups = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda counts: sum(counts) <= 9)


def by_counting(counts: list[int], correct: list[int], k: int) -> Fraction:
    """The mean over every choice of the share of right groups among the most frequent."""
    ballots = [group for group, count in enumerate(counts) for _ in range(count)]
    shares = []
    for choice in combinations(ballots, k):
        tally = Counter(choice)
        winners = [group for group, votes in tally.items() if votes == max(tally.values())]
        shares.append(Fraction(sum(correct[group] for group in winners), len(winners)))
    return sum(shares, Fraction()) / len(shares)


@given(groups, st.data())
def test_it_is_the_mean_over_every_vote(counts: list[int], data: st.DataObject) -> None:
    correct = data.draw(st.lists(st.integers(0, 1), min_size=len(counts), max_size=len(counts)))
    k = data.draw(st.integers(1, sum(counts)))
    assert majority_at_k(counts, correct, k) == pytest.approx(float(by_counting(counts, correct, k)))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.data())
def test_somebody_wins_and_more_votes_never_hurt(counts: list[int], data: st.DataObject) -> None:
    ordered = tuple(sorted(counts, reverse=True))
    chances = win_chances(ordered, data.draw(st.integers(1, sum(counts))))
    assert sum(chances) == pytest.approx(1)
    assert list(chances) == sorted(chances, reverse=True)


def test_a_vote_of_one_or_two_is_a_draw() -> None:
    assert majority_at_k([3, 1], [1, 0], 1) == majority_at_k([3, 1], [1, 0], 2) == 0.75


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="between 1 and n"):
        win_chances((2, 1), 4)


def test_a_thousand_answers_are_not_too_many() -> None:
    likely = majority_at_k([1200, 800], [1, 0], 1500)
    assert 0.999 < likely <= 1.0
    assert majority_at_k([1000, 1000], [1, 0], 1500) == pytest.approx(0.5)
