# SPDX-License-Identifier: Apache-2.0
"""Comparing two answers as read: an equivalence, whatever is compared, at a bounded cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.mathematics.comparison import Comparer
from reward_kit.mathematics.evaluate import MAX_STEPS, Exhausted, StepBudget
from reward_kit.mathematics.nodes import Node
from reward_kit.mathematics.numeric import EXACT, Tolerance
from reward_kit.mathematics.parser import read_answer
from reward_kit.mathematics.tokens import Unreadable
from reward_kit.mathematics.values import Undecided

ATOMS = st.one_of(
    st.integers(0, 99).map(str),
    st.decimals(0, 99, places=2).map(str),
    st.sampled_from(
        ["x", "y", "n", r"\pi", "e", "i", r"\infty", r"\sqrt{2}", r"x_1", "f(x)", "f(2)", "5 m", "30°", "7%"]
    ),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(r"\frac{{{}}}{{{}}}".format, inner, inner),
        st.builds("({})^2".format, inner),
        st.builds("-({})".format, inner),
        st.builds(r"\sin({})".format, inner),
        st.builds("{} + {}".format, inner, inner),
        st.builds("({})({})".format, inner, inner),
        st.builds(r"{} \pm {}".format, inner, inner),
    ),
    max_leaves=4,
)
ANSWERS = st.one_of(
    EXPRESSIONS,
    st.lists(EXPRESSIONS, min_size=2, max_size=3).flatmap(
        lambda items: st.sampled_from(["({})", r"\{{{}\}}", "[{}]", "{}"]).map(
            lambda form: form.format(", ".join(items))
        )
    ),
    st.builds("x = {}".format, EXPRESSIONS),
    st.builds("{} < x".format, EXPRESSIONS),
    st.builds("x = {} or x = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("{} : {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds(r"\begin{{pmatrix}} {} \\ {} \end{{pmatrix}}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds(r"{} + 2k, k \in \mathbb{{Z}}".format, EXPRESSIONS),
)
BROKEN = st.text(alphabet="x1(){}[]|\\+-*/^_=<,;:%!. ", max_size=30)


class CountingBudget(StepBudget):
    """A budget that tells what was spent."""

    __slots__ = ("spent",)

    def __init__(self, steps: int = MAX_STEPS) -> None:
        super().__init__(steps)
        self.spent = 0

    def spend(self, cost: int) -> None:
        self.spent += cost
        super().spend(cost)


def read(text: str) -> Node | None:
    try:
        return read_answer(text).node
    except Unreadable:
        return None


def compared(gold: str, answer: str, tolerance: Tolerance = EXACT, budget: StepBudget | None = None) -> bool | None:
    """The verdict, as the cascade asks for it: what cannot be worked out is left open."""
    right, given = read(gold), read(answer)
    assert right is not None and given is not None
    try:
        return Comparer(tolerance, frozenset(), budget or StepBudget()).same(right, given)
    except (Undecided, Exhausted):
        return None


@given(ANSWERS)
def test_an_answer_is_itself(text: str) -> None:
    if (node := read(text)) is not None:
        assert Comparer(EXACT, frozenset(), StepBudget()).same(node, node) is True


@given(ANSWERS, ANSWERS)
def test_the_verdict_is_the_same_both_ways(gold: str, answer: str) -> None:
    if read(gold) is not None and read(answer) is not None:
        assert compared(gold, answer) is compared(answer, gold)


@given(EXPRESSIONS)
def test_rewriting_an_expression_does_not_change_it_and_adding_one_does(text: str) -> None:
    if read(text) is None or any(sign in text for sign in ("pm", "m", "°", "%", "infty")) or read(f"({text})") is None:
        return
    for rewritten in (f"({text})", f"0 + ({text})", f"1 \\cdot ({text})", f"-(-({text}))", rf"\frac{{2({text})}}{{2}}"):
        if read(rewritten) is not None:
            assert compared(text, rewritten) is not False, rewritten
    if compared(text, f"0 + ({text})") is True:
        assert compared(text, f"({text}) + 1") is not True


@given(st.one_of(ANSWERS, BROKEN), st.one_of(ANSWERS, BROKEN), st.sampled_from([EXACT, Tolerance(0.01, 1e-8)]))
def test_nothing_but_what_the_cascade_expects_is_raised(gold: str, answer: str, tolerance: Tolerance) -> None:
    if read(gold) is not None and read(answer) is not None:
        assert compared(gold, answer, tolerance) in (True, False, None)


@given(ANSWERS, ANSWERS, st.integers(0, 300))
def test_a_comparison_never_spends_more_than_its_budget(gold: str, answer: str, steps: int) -> None:
    """The last step may be a costly one. A smaller budget leaves open what a larger one decides, and no more."""
    if read(gold) is None or read(answer) is None:
        return
    budget = CountingBudget(steps)
    verdict = compared(gold, answer, budget=budget)
    assert budget.spent <= steps + 20
    assert verdict is None or verdict is compared(gold, answer)


def test_a_costly_comparison_is_left_open_at_the_end_of_its_budget() -> None:
    budget = CountingBudget()
    costly = "+".join(rf"\arctan(x_{{{index}}})" for index in range(1000))
    assert compared(costly, costly + "+ 0", budget=budget) is None
    assert MAX_STEPS < budget.spent <= MAX_STEPS + 20


def test_what_fits_the_budget_is_decided_and_what_does_not_is_left_open() -> None:
    terms = [rf"\sin(x + {index})" for index in range(30)]
    forth, back = "+".join(terms), "+".join(reversed(terms))
    assert compared(forth, back) is True
    assert compared(forth, back, budget=StepBudget(500)) is None


def test_work_grows_with_the_length_of_the_answer_and_no_faster() -> None:
    used = []
    for count in (20, 40, 80):
        terms = "+".join(f"{index + 2}x^{index}" for index in range(count))
        budget = CountingBudget()
        assert compared(terms, terms + "+ 0", budget=budget) is True
        used.append(budget.spent)
    assert used[1] < 2.2 * used[0] and used[2] < 2.2 * used[1]


@pytest.mark.parametrize("tower", ["2^{10^{10}}", "3^{-10^{10}}", "1.5^{10^{9}}"])
@pytest.mark.parametrize("other", ["0", "1", "0.5", "2^{10^{10}+1}", "2k", "x < 3", "(0, 1)"])
def test_numbers_that_nobody_can_write_down_are_compared_without_writing_them_down(tower: str, other: str) -> None:
    """As a fraction, the first has three billion digits."""
    for tolerance in (EXACT, Tolerance(0.001, 1e-8)):
        noise = tolerance.absolute and tower.startswith("3^{-") and other == "0"  # beside nothing, it is nothing
        assert bool(compared(other, tower, tolerance)) is bool(noise)
        assert not compared(tower, other, tolerance)
    compared(f"{tower} < x < {tower} + 1", f"x^2 > {tower}")
    compared(rf"{tower} k, k \in \mathbb{{Z}}", rf"{other} + {tower} k, k \in \mathbb{{Z}}")
    assert compared(rf"{tower} k, k \in \mathbb{{Z}}", r"3k, k \in \mathbb{Z}") is not True
