# SPDX-License-Identifier: Apache-2.0
"""Sets of real numbers by their pieces, against membership as Python computes it, and families by their parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.equivalence import equivalent
from reward_kit.mathematics.evaluate import Exhausted, StepBudget
from reward_kit.mathematics.nodes import Interval, Negative, Node, Number, Sequence, SetOperation
from reward_kit.mathematics.numeric import constant
from reward_kit.mathematics.parser import read_answer
from reward_kit.mathematics.sets import NotReal, RealSets, is_set
from reward_kit.mathematics.tokens import Unreadable
from reward_kit.mathematics.values import Undecided


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


# ── sets of sets, and which numbers are in them ──────────────────────────────────────────────────────────────────────

SIMPLE = st.builds(
    lambda low, length, opening, closing: (
        Interval(Number(Fraction(low)), Number(Fraction(low + length)), opening, closing),
        lambda x: low < x < low + length or (x == low and opening == "[") or (x == low + length and closing == "]"),
    ),
    st.integers(-5, 5), st.integers(1, 4), st.sampled_from("(["), st.sampled_from(")]"),
)  # fmt: skip
POINTS = st.sets(st.integers(-5, 5), min_size=1, max_size=3).map(
    lambda found: (Sequence(tuple(Number(Fraction(x)) for x in sorted(found)), "{", "}"), lambda x: x in found)
)
Set = tuple[Node, Callable[[Fraction], bool]]
"""A set as it is written, and whether a number is in it."""


def _joined(operator: str, left: Set, right: Set) -> Set:
    (one, in_one), (other, in_other) = left, right
    rule: dict[str, Callable[[Fraction], bool]] = {
        "∪": lambda x: in_one(x) or in_other(x),
        "∩": lambda x: in_one(x) and in_other(x),
        "∖": lambda x: in_one(x) and not in_other(x),
    }
    return SetOperation(operator, (one, other)), rule[operator]


SETS: st.SearchStrategy[Set] = st.recursive(
    st.one_of(SIMPLE, POINTS), lambda inner: st.builds(_joined, st.sampled_from("∪∩∖"), inner, inner), max_leaves=4
)
PROBES = [Fraction(n, 4) for n in range(-48, 49)]


def _equal(one: Node, other: Node) -> bool | None:
    return constant(one, StepBudget()) == constant(other, StepBudget())


def _same(gold: Node, answer: Node) -> bool | None:
    sets = RealSets(StepBudget())
    return sets.same_pieces(sets.pieces(gold), sets.pieces(answer), _equal)


@given(SETS)
def test_the_pieces_of_a_set_hold_the_numbers_that_are_in_it(made: Set) -> None:
    node, is_in = made
    pieces = RealSets(StepBudget()).pieces(node)
    for x in PROBES:
        held = any(
            (piece.low.value < x or (piece.low.value == x and piece.opening == "["))
            and (x < piece.high.value or (x == piece.high.value and piece.closing == "]"))
            for piece in pieces
            if isinstance(piece.low, Number) and isinstance(piece.high, Number)
        )
        assert held is is_in(x), (x, pieces)


@given(SETS, SETS)
def test_two_sets_are_the_same_where_they_have_the_same_members(one: Set, other: Set) -> None:
    """Ends lie on whole numbers, so quarters between them tell sets apart."""
    same = all(one[1](x) == other[1](x) for x in PROBES)
    assert _same(one[0], other[0]) is same
    assert _same(other[0], one[0]) is same
    assert _same(one[0], one[0]) is True


@pytest.mark.parametrize(
    ("closing", "opening", "same"), [(")", "(", False), ("]", "(", True), (")", "[", True), ("]", "[", True)]
)
def test_pieces_that_touch_are_one_where_the_number_between_them_is_in_either(
    closing: str, opening: str, same: bool
) -> None:
    low, middle, high = (Number(Fraction(at)) for at in (0, 1, 2))
    two = SetOperation("∪", (Interval(low, middle, "(", closing), Interval(middle, high, opening, ")")))
    assert _same(two, Interval(low, high, "(", ")")) is same


@given(SETS, SETS)
def test_joining_is_the_same_in_either_order_and_taking_all_leaves_nothing(one: Set, other: Set) -> None:
    for operator in "∪∩":
        assert _same(SetOperation(operator, (one[0], other[0])), SetOperation(operator, (other[0], one[0]))) is True
    assert RealSets(StepBudget()).pieces(SetOperation("∖", (one[0], one[0]))) == []


@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from(["<", r"\le", ">", r"\ge"]))
def test_an_inequality_says_where_its_sides_are_ordered_so(slope: int, offset: int, sign: str) -> None:
    if not slope:
        return
    pieces = RealSets(StepBudget()).pieces(read_answer(f"{slope}x + {offset} {sign} 0").node)
    end = Fraction(-offset, slope)
    (piece,) = pieces
    upward = (sign in (">", r"\ge")) == (slope > 0)
    bound, mark = (piece.low, piece.opening) if upward else (piece.high, piece.closing)
    assert constant(bound, StepBudget()) == end
    assert (mark in "[]") is (sign in (r"\le", r"\ge"))


@given(st.text(alphabet="xyR123()[]{}|\\<>=,; cupcapin∪∩∞-+^", max_size=40))
def test_whatever_is_read_is_a_set_of_real_numbers_or_is_not(text: str) -> None:
    try:
        node = read_answer(text).node
    except Unreadable:
        return
    is_set(node)
    with contextlib.suppress(NotReal, Undecided, Exhausted):
        RealSets(StepBudget()).pieces(node)


def test_a_set_is_not_worked_out_beyond_its_budget() -> None:
    root = read_answer(r"\sqrt{2}").node
    many = SetOperation("∪", tuple(Interval(Negative(root), root, "(", ")") for _ in range(50)))
    with pytest.raises(Exhausted):
        sets = RealSets(StepBudget(100))
        sets.same_pieces(sets.pieces(many), sets.pieces(many), _equal)
