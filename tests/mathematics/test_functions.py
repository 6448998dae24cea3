# SPDX-License-Identifier: Apache-2.0
"""Sixty digits: the functions obey the laws they must, and rounding is never mistaken for meaning."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.functions import (
    FUNCTIONS,
    PI,
    E,
    binomial,
    exponential,
    factorial,
    logarithm,
    power,
    root,
)
from reward_kit.mathematics.values import Big, Undecided, Value, as_big, close, is_real

REALS = st.fractions(-5, 5, max_denominator=997)
POSITIVE = st.fractions(Fraction(1, 100), 50, max_denominator=997)


def real(value: Value) -> float:
    assert is_real(value)
    return float(as_big(value).re)


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "sinh", "cosh", "tanh", "exp"])
@given(REALS)
def test_functions_agree_with_floats(name: str, x: Fraction) -> None:
    assert real(FUNCTIONS[name](x)) == pytest.approx(getattr(math, name)(float(x)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("name", "other"), [("arcsin", math.asin), ("arccos", math.acos), ("arctan", math.atan)])
@given(st.fractions(-1, 1, max_denominator=997))
def test_arcs_agree_with_floats(name: str, other: object, x: Fraction) -> None:
    assert callable(other)
    assert real(FUNCTIONS[name](x)) == pytest.approx(other(float(x)), rel=1e-9, abs=1e-12)


@given(REALS, REALS)
def test_addition_theorems_hold_to_the_last_digits(x: Fraction, y: Fraction) -> None:
    sine, cosine = FUNCTIONS["sin"], FUNCTIONS["cos"]
    assert close(sine(x + y), sine(x) * cosine(y) + cosine(x) * sine(y))
    assert close(exponential(x + y), exponential(x) * exponential(y))
    assert close(sine(x) * sine(x) + cosine(x) * cosine(x), Fraction(1))


@given(POSITIVE, st.integers(2, 9))
def test_roots_and_logarithms_undo_powers(x: Fraction, degree: int) -> None:
    assert close(power(root(x, degree), Fraction(degree)), x)
    assert close(exponential(logarithm(x)), x)
    assert close(root(-x, 3), -root(x, 3))


def test_known_values() -> None:
    assert close(exponential(PI * Big(Decimal(0), Decimal(1))), Fraction(-1))
    assert close(logarithm(E), Fraction(1))
    assert not FUNCTIONS["sin"](PI)
    assert root(Fraction(9, 4), 2) == Fraction(3, 2)
    assert factorial(Fraction(10)) == 3628800 and binomial(Fraction(7), Fraction(4)) == 35
    assert FUNCTIONS["floor"](PI) == 3 and FUNCTIONS["ceil"](PI) == 4 and FUNCTIONS["sgn"](-PI) == -1


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: factorial(Fraction(1, 2)),
        lambda: factorial(Fraction(10**7)),
        lambda: binomial(Fraction(10**9), Fraction(5)),
        lambda: logarithm(Fraction(0)),
        lambda: power(Fraction(0), Fraction(-1)),
        lambda: exponential(Fraction(10) ** 30),
        lambda: FUNCTIONS["sin"](Fraction(10) ** 30),
        lambda: E / Fraction(0),
    ],
)
def test_what_has_no_value_within_bounds_is_undecided(attempt: object) -> None:
    assert callable(attempt)
    with pytest.raises((Undecided, ZeroDivisionError)):
        attempt()


def test_a_part_that_would_be_rounded_away_is_not_lost_in_silence() -> None:
    with pytest.raises(Undecided):
        exponential(Fraction(200)) + exponential(Fraction(-200))
    assert not close(exponential(Fraction(200)), exponential(Fraction(-200)))
    # A near miss: e^(π√163) is a whole number in its first thirty digits.
    assert not close(exponential(PI * root(Fraction(163), 2)), Fraction(262537412640768744))
