# SPDX-License-Identifier: Apache-2.0
"""Numbers and expressions by their values: exact, correctly rounded, or another number."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.evaluate import StepBudget
from reward_kit.mathematics.nodes import Node
from reward_kit.mathematics.numeric import EXACT, Tolerance, same_direction, same_expression, same_solutions
from reward_kit.mathematics.parser import read_answer

FRACTIONS = st.fractions(Fraction(1, 10), 1000, max_denominator=997)


def node(text: str) -> Node:
    return read_answer(text).node


def same(gold: str, answer: str, tolerance: Tolerance = EXACT) -> bool | None:
    return same_expression(node(gold), node(answer), tolerance, StepBudget())


def written(value: Fraction) -> str:
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def rounded(value: Fraction, decimals: int, units: int = 0) -> str:
    """The value to so many decimals, and so many units of the last of them more."""
    digits = round(value * 10**decimals) + units
    return f"{digits // 10**decimals}.{digits % 10**decimals:0{decimals}}"


@given(FRACTIONS, st.integers(8, 10))
def test_many_digits_stand_for_what_they_are_the_correct_rounding_of(value: Fraction, decimals: int) -> None:
    assert same(written(value), rounded(value, decimals)) is True
    if value.denominator > 1:
        assert same(written(value), rounded(value, decimals, units=2)) is False


@given(FRACTIONS, st.integers(1, 3))
def test_few_digits_stand_for_themselves_unless_a_tolerance_says_more(value: Fraction, decimals: int) -> None:
    answer = rounded(value, decimals)
    assert same(written(value), answer) is (Fraction(answer) == value)
    if value.denominator > 1 and abs(Fraction(answer) - value) < value / 1001:
        assert same(written(value), answer, Tolerance(0.001, 1e-8)) is True
        assert same(written(value), rounded(value, decimals, units=2), Tolerance(0.001, 1e-8)) is False


@given(st.integers(-(10**6), 10**6), st.integers(1, 9))
def test_no_tolerance_makes_two_whole_numbers_equal(whole: int, more: int) -> None:
    assert same(str(whole), str(whole + more), Tolerance(0.5, 100.0)) is False


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
def test_an_equation_is_any_multiple_of_itself_and_an_inequality_a_positive_one(a: int, b: int, factor: int) -> None:
    once, more = node(f"x^2 + {a}x + {b}y"), node(f"{factor}(x^2 + {a}x + {b}y)")
    less, other = node(f"-{factor}(x^2 + {a}x + {b}y)"), node(f"x^2 + {a}x + {b}y + 1")
    if b:
        assert same_solutions(once, more, StepBudget()) is same_solutions(once, less, StepBudget()) is True
        assert same_solutions(once, other, StepBudget()) is False
    assert same_direction(once, more, StepBudget()) is True
    assert same_direction(once, less, StepBudget()) is False
