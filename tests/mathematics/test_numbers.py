# SPDX-License-Identifier: Apache-2.0
"""Numbers in digits and in words."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.equivalence import equivalent
from reward_kit.mathematics.numbers import foreign_number, number, plain_number, spelled_number, with_point


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("twenty-one", "21"), ("One hundred and five", "105"), ("two thousand three hundred forty", "2340"),
        ("one million two hundred thousand", "1200000"), ("three-quarters", "3/4"), ("one half", "1/2"),
        ("half", "1/2"),
        ("two and a half", "5/2"), ("minus seven", "-7"), ("twelve", "12"), ("a third", "1/3"), ("zero", "0"),
    ],
)  # fmt: skip
def test_numbers_in_words(text: str, value: str) -> None:
    assert str(spelled_number(text)) == value
    assert equivalent(value, text) is True


@pytest.mark.parametrize(
    "text", ["", "and", "one two", "twenty ten", "hundred", "five hundred hundred", "one thousand million", "a",
             "third", "one and", "thousand one thousand", "ten five", "zero five", "one or two", "someone"],
)  # fmt: skip
def test_words_that_spell_no_number(text: str) -> None:
    assert spelled_number(text) is None


@given(st.integers(0, 10**9), st.integers(0, 999), st.booleans(), st.booleans())
def test_a_number_in_digits_is_that_number_with_and_without_separators(
    whole: int, thousandths: int, grouped: bool, negative: bool
) -> None:
    digits = f"{whole:,}" if grouped else str(whole)
    text = f"{digits}.{thousandths:03}"
    value = Fraction(whole) + Fraction(thousandths, 1000)
    assert number(text).value == value
    found = plain_number(f"-${text}" if negative else f" ${text} ")
    assert found is not None and found.value == (-value if negative else value)
    assert found.decimals == 3


@given(st.integers(1000, 10**9), st.integers(0, 99))
def test_points_between_thousands_and_a_comma_before_decimals_are_a_number_elsewhere(whole: int, cents: int) -> None:
    text = f"{whole:,}".replace(",", ".") + f",{cents:02}"
    assert plain_number(text) is None
    assert foreign_number(text) == Fraction(whole) + Fraction(cents, 100)
    assert with_point(f"{text} €") == f"{whole}.{cents:02} €"


@given(st.text(max_size=70))
def test_any_text_is_a_number_or_none(text: str) -> None:
    for read in (plain_number, foreign_number, spelled_number, with_point):
        read(text)
