"""Sets of real numbers by their pieces, and families by their parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.equivalence import equivalent


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"(-\infty,-1)\cup(1,\infty)", r"\mathbb{R} \setminus [-1,1]"), ("[0,5]", r"[0,10] \cap (-3,5]"),
        (r"(0,1)\cup(2,3)", r"(0,3)\setminus[1,2]"), (r"\emptyset", r"(0,1)\cap(2,3)"), (r"\{1\}", r"[0,1]\cap[1,2]"),
        (r"(0,1)\cup(1,3)", r"(0,3)\setminus\{1\}"), (r"(0,3)\setminus(1,2)", r"(0,1]\cup[2,3)"),
        (r"x=\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+k\pi"),
        (r"x=\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+n\pi, n\in Z"), (r"x \in R", r"\mathbb{R}"),
    ],
)  # fmt: skip
def test_sets_are_equal_by_what_is_in_them(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"(0,1)\cup(2,3)", r"(0,3)\setminus(1,2)"), ("[0,5]", r"[0,10] \cap (-3,5)"), (r"\{1\}", r"[0,1)\cap[1,2]"),
        (r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}+2k\pi, k\in\mathbb{Z}"), ("2k", "2n"),
        (r"2k, k\in\mathbb{Z}", r"2x"), (r"(0,1)\cup(2,3)", r"(0,1)\cap(2,3)"),
    ],
)  # fmt: skip
def test_sets_that_differ_at_one_end_differ(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True
    assert equivalent(answer, gold) is not True


ENDS = st.tuples(st.integers(-20, 20), st.integers(1, 9), st.sampled_from("(["), st.sampled_from(")]"))


@given(ENDS, st.sampled_from("xyat"))
def test_an_interval_equals_itself_in_every_notation_and_no_neighbour(
    ends: tuple[int, int, str, str], name: str
) -> None:
    low, length, opening, closing = ends
    high = low + length
    interval = f"{opening}{low}, {high}{closing}"
    less, below = "≤" if opening == "[" else "<", r"\le " if closing == "]" else "<"
    notations = [
        rf"\left{opening}{low},{high}\right{closing}",
        f"{low} {less} {name} {below} {high}",
        rf"{name} \in {interval}",
        rf"\{{{name} \mid {low} {less} {name} {below} {high}\}}",
        f"{']' if opening == '(' else '['}{low}, {high}{'[' if closing == ')' else ']'}",
    ]
    other_end = f"{opening}{low}, {high}{')' if closing == ']' else ']'}"
    for notation in notations:
        assert equivalent(interval, notation) is True
        assert equivalent(other_end, notation) is not True
        assert equivalent(f"{opening}{low}, {high + 1}{closing}", notation) is not True
