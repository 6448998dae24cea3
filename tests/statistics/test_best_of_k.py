# SPDX-License-Identifier: Apache-2.0
"""Best-of-k against picking the best of every possible choice of k answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import best_of_k, pass_at_k, rank_weights

answers = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1)), min_size=1, max_size=8)


def by_counting(drawn: list[tuple[float, int]], k: int) -> Fraction:
    """The mean over every choice of the share of right answers among its best-scored."""
    shares = []
    for choice in combinations(drawn, k):
        best = [right for score, right in choice if score == max(score for score, _ in choice)]
        shares.append(Fraction(sum(best), len(best)))
    return sum(shares, Fraction()) / len(shares)


@given(answers, st.data())
def test_it_is_the_mean_over_every_choice(drawn: list[tuple[float, int]], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(drawn)))
    scores, correct = zip(*drawn, strict=True)
    assert best_of_k(scores, correct, k) == pytest.approx(float(by_counting(drawn, k)))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12), st.data())
def test_scores_that_are_the_verdicts_make_it_pass_at_k(correct: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(correct)))
    assert best_of_k(correct, correct, k) == pytest.approx(pass_at_k(len(correct), sum(correct), k))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_some_rank_is_the_best(sizes: tuple[int, int]) -> None:
    assert sum(rank_weights(*sizes)) == pytest.approx(1)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="between 1 and n"):
        best_of_k([0.5], [1], 2)
    with pytest.raises(ValueError, match="one score an answer"):
        best_of_k([0.5, 0.6], [1], 1)
