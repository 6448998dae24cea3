# SPDX-License-Identifier: Apache-2.0
"""Paired tests against counting every outcome; the interval by what it promises."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.statistics import PairedDifference, mcnemar, normal_quantile, paired_difference

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


differences = st.lists(st.integers(-8, 8).map(lambda eighths: eighths / 8), min_size=1, max_size=60)


def compared(changes: list[float]) -> PairedDifference:
    squares, absolute = sum(change * change for change in changes), sum(map(abs, changes))
    return paired_difference(sum(changes), squares, samples=len(changes), absolute=absolute)


@given(differences)
def test_the_interval_and_the_test_say_the_same(changes: list[float]) -> None:
    found = compared(changes)
    assert found.value == pytest.approx(sum(changes) / len(changes))
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


@given(differences)
def test_swapping_the_systems_turns_the_sign(changes: list[float]) -> None:
    there, back = compared(changes), compared([-change for change in changes])
    assert (back.value, back.low, back.high) == pytest.approx((-there.value, -there.high, -there.low))
    assert back.p == pytest.approx(there.p)


@given(differences)
def test_more_of_the_same_samples_are_a_narrower_interval(changes: list[float]) -> None:
    once, often = compared(changes), compared(changes * 4)
    assert often.high - often.low < once.high - once.low or once.high - once.low == 2


def test_with_many_samples_it_is_students_test() -> None:
    """Ten pairs a thousand times over: what is imagined does not count any more."""
    changes = [0, 1, 0, 0, 0, 1, 0, 0, 0, 1] * 1_000
    error = sqrt((0.3 - 0.09) / (len(changes) - 1))
    found = compared([float(change) for change in changes])
    assert (found.low, found.high) == pytest.approx((0.3 - Z * error, 0.3 + Z * error), abs=1e-4)


@pytest.mark.parametrize("samples", [1, 5, 20, 1_000])
def test_no_difference_at_all_is_not_certainty(samples: int) -> None:
    found = compared([0.0] * samples)
    assert (found.value, found.p) == (0, 1)
    assert found.low == -found.high
    assert found.high >= 1 / samples


@given(differences)
def test_a_difference_that_hardly_changes_hardly_changes_the_interval(changes: list[float]) -> None:
    """Also where nothing differed before: there is no seam between no difference and a tiny one."""
    nudged = [changes[0] - 1e-9 if changes[0] > 0 else changes[0] + 1e-9, *changes[1:]]
    before, after = compared(changes), compared(nudged)
    assert tuple(after) == pytest.approx(tuple(before), abs=1e-6)


def test_nothing_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="at least one"):
        paired_difference(0, 0, samples=0, absolute=0)
