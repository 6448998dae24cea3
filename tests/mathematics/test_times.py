# SPDX-License-Identifier: Apache-2.0
"""Dates and times of day as people write them."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.equivalence import equivalent
from reward_kit.mathematics.times import Date, read_date, read_time, same_time


def test_a_bare_number_or_ratio_is_no_time() -> None:
    assert read_time("7") is None and read_time("3:75") is None and read_time("1:2:3") is None
    assert read_time("25:00") is None and read_time("3 pm tomorrow") is None


@given(st.dates(datetime.date(1000, 1, 1)))
def test_a_date_is_the_same_in_every_form(day: datetime.date) -> None:
    month = day.strftime("%B")
    forms = [
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month} {day.year}",
        f"the {day.day}th of {month}, {day.year}",
        f"{month[:3]}. {day.day} {day.year}",
        day.isoformat(),
    ]
    assert {read_date(form) for form in forms} == {Date(day.month, day.day, day.year)}


@given(st.integers(0, 11), st.integers(0, 59), st.booleans())
def test_a_time_is_the_same_on_both_dials_and_not_half_a_day_later(hour: int, minute: int, afternoon: bool) -> None:
    half, other = ("p.m.", "AM") if afternoon else ("am", "PM")
    twelve = f"{hour or 12}:{minute:02}"
    time, wrong = read_time(f"{twelve} {half}"), read_time(f"{twelve} {other}")
    dial = read_time(f"{hour + 12 * afternoon}:{minute:02}")
    assert time is not None and wrong is not None and dial is not None
    assert same_time(time, dial) is True
    assert same_time(time, wrong) is False


@pytest.mark.parametrize(("gold", "answer"), [("noon", "12 p.m."), ("3:30 pm", "15:30"), ("May 4", "4th of May")])
def test_two_ways_to_name_a_moment_are_equal(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is equivalent(answer, gold) is True
