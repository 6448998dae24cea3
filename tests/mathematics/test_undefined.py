# SPDX-License-Identifier: Apache-2.0
"""What has no value, such as 0/0, anywhere in an answer: the verdict is the same both ways."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward_kit.mathematics.math_verify import worth_asking
from reward_kit.rewards.math import answers_match

UNDEFINED = [
    r"\frac{0}{0}", "1/0", r"\log(0)", r"\ln 0", r"\infty - \infty", r"\frac{x}{0}", r"\tan 90^\circ", "0^{-1}",
    r"\frac{1}{x - x}", r"\sqrt{1/0}", r"0 \cdot \infty", "(0/0)!", r"\arcsin(1/0)",
]  # fmt: skip
DEFINED = ["0", "1", "2", "-1", "0.5", r"\frac{1}{2}", r"\sqrt{2}", r"\pi", "x", "y + 1", "2x", r"\infty", "2i", "k"]
TERMS = st.one_of(st.sampled_from(DEFINED), st.sampled_from(UNDEFINED))
UNITS = ["{} m", r"{} \text{{ cm}}", r"{}\%", r"{}^\circ", r"\${}", "{} apples"]
ONE = st.one_of(
    TERMS,
    st.builds("{} + {}".format, TERMS, TERMS),
    st.builds("-({})".format, TERMS),
    st.builds(r"\frac{{{}}}{{{}}}".format, TERMS, TERMS),
    st.builds(r"{} \pm {}".format, TERMS, TERMS),
    st.builds(lambda form, term: form.format(term), st.sampled_from(UNITS), TERMS),
)
TWO = [
    "{}, {}", "({}, {})", "[{}, {}]", r"({}, {}]", r"\{{{}, {}\}}", r"{} \text{{ or }} {}", r"{} \text{{ and }} {}",
    r"x = {} \text{{ or }} x = {}", "x = {} or x = {}", "x = {}, x = {}", "x = {}, y = {}", "x = {} and y = {}",
    "(x, y) = ({}, {})", r"\begin{{pmatrix}} {} \\ {} \end{{pmatrix}}", r"\begin{{pmatrix}} {} & {} \end{{pmatrix}}",
    "{} : {}", "{} < x < {}", r"{} \le x \le {}", r"x < {} \text{{ or }} x > {}", r"x > {} \text{{ and }} x < {}",
    "y = {}x + {}", "{}x + {} = 0", r"(-\infty, {}) \cup ({}, \infty)", r"[{}, 1] \cap [0, {}]", "[[{}, 1], [{}, 0]]",
    r"\{{x \mid {} < x < {}\}}", r"\mathbb{{R}} \setminus \{{{}, {}\}}", "{} = {}", r"{} \neq {}", "({}, 1), (2, {})",
    r"\{{({}, 1), ({}, 2)\}}", r"x \neq {}, {}", r"{} + {}k, k \in \mathbb{{Z}}", "x = {} or y = {}",
    "x_1 = {}, x_2 = {}", r"|x - {}| < {}", "x^2 = {} or x = {}", r"{} m \text{{ or }} {} m", "1, {}, {}, 2",
]  # fmt: skip
WHOLE = [r"\emptyset", r"\mathbb{R}", "no solution", "undefined", "x", "{0}", "x > 0", "(0, 1)", "1, 2", "5 m", "Yes"]
ANSWERS = st.one_of(
    ONE,
    st.sampled_from(WHOLE),
    st.builds("x = {}".format, ONE),
    st.builds("f(x) = {}".format, ONE),
    st.builds("x < {}".format, ONE),
    st.builds(r"\{{{}\}}".format, ONE),
    st.builds("({})".format, ONE),
    st.builds(lambda form, left, right: form.format(left, right), st.sampled_from(TWO), ONE, ONE),
    st.builds(lambda form, left, right: form.format(left, right), st.sampled_from(TWO), TERMS, TERMS),
)


@settings(max_examples=500)
@given(ANSWERS, ANSWERS)
@example("0", r"x = 1 or x = \frac{0}{0}")
@example("1, 2", "0, 1/0")
@example("[2, 1]", r"(\ln 0, 1/0)")
@example(r"(1, 2) \cup (3, 4)", r"(1/0, 2) \cup (3, 5)")
def test_the_verdict_is_the_same_both_ways(gold: str, answer: str) -> None:
    if not worth_asking(gold, answer):  # it takes long
        assert answers_match(gold, answer) is answers_match(answer, gold)


@settings(max_examples=200)
@given(st.sampled_from(TWO), TERMS, TERMS, TERMS, TERMS)
def test_it_is_so_for_the_same_form_with_other_parts(form: str, a: str, b: str, c: str, d: str) -> None:
    for left, right in (((a, b), (b, a)), ((a, b), (a, c)), ((a, b), (c, d))):
        gold, answer = form.format(*left), form.format(*right)
        if not worth_asking(gold, answer):  # it takes long
            assert answers_match(gold, answer) is answers_match(answer, gold)


@pytest.mark.parametrize("form", ["{}", "1, {}", "({}, 2)", r"\{{1, {}\}}", "x = 1 or x = {}", "(1, {}]", "{} m"])
@pytest.mark.parametrize("undefined", [r"\frac{0}{0}", "1/0", r"\ln 0", r"\infty - \infty"])
def test_what_has_no_value_equals_no_number(form: str, undefined: str) -> None:
    assert answers_match(form.format("3"), form.format(undefined)) is not True
    assert answers_match(form.format(undefined), form.format("3")) is not True
