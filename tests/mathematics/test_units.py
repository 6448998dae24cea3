# SPDX-License-Identifier: Apache-2.0
"""Units: their grammar, their sizes, and letters that only look like them."""

from __future__ import annotations

import pytest

from reward_kit.mathematics.equivalence import equivalent

UNITS = [
    "cm", "cm²", r"\text{ cm}^{2}", r"\,\mathrm{m/s^2}", r"\,\mathrm{m\,s^{-2}}", " m s^{-2}", r" \frac{m}{s^2}",
    r" \frac{\text{km}}{\text{h}}", " square feet", " miles per hour", " years old", " more apples", "~kg", " m³",
    " erg", r" \text{ sq. units}", " of them", " m/s", r"\text{ ways}",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("value", ["7", "9.8", "-12", r"6.0 \times 10^{-3}"])
def test_a_unit_does_no_harm_and_no_good(value: str, unit: str) -> None:
    assert equivalent(value, value + unit) is True
    assert equivalent(value + unit, value) is True
    assert equivalent("8", value + unit) is False


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2.5 hours", "2 hours 30 minutes"),
        ("150 minutes", "2 hours and 30 minutes"), ("66 inches", "5 feet 6 inches"),
        ("3725 s", "1 hour, 2 minutes, 5 seconds"), ("1.2 m", "120 cm"), (r"\$0.75", "75 cents"), ("75¢", r"\$0.75"),
        ("450 cents", "$4.50"), ("0.5 km", r"500\text{ m}"),
    ],
)  # fmt: skip
def test_units_of_one_kind_are_converted(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("5 kg", "5 km"), ("2 hours 30 minutes", "2.3 hours"), ("5 feet 6 inches", "56 inches"), ("-48g", "-48"),
        ("-312u", "-312"), ("5 m", "5 km"), (r"\$0.75", "7.5 cents"), ("12", "12 to 15"), ("12", "between 12 and 15"),
        ("12", "12 apples and 3 pears"), ("12", "not 12"), ("12", "more than 12 apples"),
    ],
)  # fmt: skip
def test_other_amounts_are_other_answers(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True
    assert equivalent(answer, gold) is not True
