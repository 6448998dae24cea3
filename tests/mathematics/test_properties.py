# SPDX-License-Identifier: Apache-2.0
"""Random expressions: equal exactly when their values are, whatever the dialect they are written in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reward_kit.mathematics.equivalence import equivalent

POINTS = [{"x": Fraction(7, 3), "y": Fraction(-5, 4)}, {"x": Fraction(-11, 8), "y": Fraction(13, 5)},
          {"x": Fraction(19, 6), "y": Fraction(17, 9)}]  # fmt: skip

Expression = Any
"""A number, a name, or a triple of an operator and its operands."""

LEAVES = st.one_of(st.integers(1, 9), st.sampled_from("xy"))
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.tuples(st.sampled_from("+-*/"), parts, parts), st.tuples(st.just("^"), parts, st.integers(2, 3))
    ),
    max_leaves=5,
)


def value(expression: Expression, point: dict[str, Fraction]) -> Fraction:
    if isinstance(expression, int):
        return Fraction(expression)
    if isinstance(expression, str):
        return point[expression]
    operator, left, right = expression
    over, under = value(left, point), value(right, point)
    if operator == "/":
        return over / under
    if operator == "^":
        return Fraction(over**right)
    return over + under if operator == "+" else over - under if operator == "-" else over * under


def latex(expression: Expression) -> str:
    if not isinstance(expression, tuple):
        return str(expression)
    operator, left, right = expression
    if operator == "/":
        return rf"\frac{{{latex(left)}}}{{{latex(right)}}}"
    if operator == "^":
        return rf"\left({latex(left)}\right)^{{{right}}}"
    sign = r" \cdot " if operator == "*" else operator
    return rf"\left({latex(left)}{sign}{latex(right)}\right)"


def python(expression: Expression) -> str:
    if not isinstance(expression, tuple):
        return str(expression)
    operator, left, right = expression
    return f"({python(left)} {'**' if operator == '^' else operator} {python(right)})"


def unicode(expression: Expression) -> str:
    if not isinstance(expression, tuple):
        return str(expression)
    operator, left, right = expression
    if operator == "^":
        return f"({unicode(left)}){'²³'[right - 2]}"
    return f"({unicode(left)} {operator.replace('*', '×').replace('-', '−').replace('/', '÷')} {unicode(right)})"


def values(expression: Expression) -> list[Fraction]:
    try:
        return [value(expression, point) for point in POINTS]
    except ZeroDivisionError:
        return []


@settings(max_examples=150)
@given(EXPRESSIONS)
def test_an_expression_equals_itself_in_every_dialect(expression: Expression) -> None:
    assume(values(expression))
    for written in (python(expression), unicode(expression), f"${latex(expression)}$."):
        assert equivalent(latex(expression), written) is True


@settings(max_examples=300)
@given(EXPRESSIONS, EXPRESSIONS)
def test_two_expressions_are_equal_exactly_when_their_values_are(left: Expression, right: Expression) -> None:
    assume(values(left) and values(right))
    assert (equivalent(latex(left), python(right)) is True) is (values(left) == values(right))


def neighbours(expression: Expression) -> list[Expression]:
    """The expression with one operator or number changed."""
    if isinstance(expression, int):
        return [expression + 1]
    if isinstance(expression, str):
        return ["y" if expression == "x" else "x"]
    operator, left, right = expression
    found: list[Expression] = [(operator, other, right) for other in neighbours(left)]
    if operator == "^":
        return [*found, (operator, left, 5 - right), ("/", left, right), ("+", left, right)]
    found += [(operator, left, other) for other in neighbours(right)]
    return [*found, *((other, left, right) for other in "+-*/" if other != operator)]


@settings(max_examples=100)
@given(EXPRESSIONS)
def test_a_change_of_one_sign_or_number_is_seen(expression: Expression) -> None:
    assume(values(expression))
    for other in neighbours(expression):
        if values(other):
            same = values(other) == values(expression)
            assert (equivalent(latex(expression), latex(other)) is True) is same


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("3x", "3+x"), ("x/2", "x^2"), (r"\frac{x}{2}", "x^2"), (r"70\sqrt{2}", r"70+\sqrt{2}"), ("-x", r"x\%"),
        (r"\lceil n/2 \rceil", r"\lceil n/9 \rceil"), (r"\lfloor x \rfloor + 1", r"\lceil x \rceil"),
        (r"\sin x > \frac12", r"\cos x > \frac12"), ("f(1) > f(a+1)", "f(1) > f(a+2)"), (r"\ln x > 2", r"(2, \infty)"),
        (r"\max(a, b)", r"\min(a, b)"), ("(x)^2", "(x)^3"), ("(a)(b+1)", "(a)(b+2)"), ("(a) + 1", "(a) + 2"),
        ("(B) 7", "(B) 8"), ("(B) 7", "8"), ("(B) 7", "(C) 7"),
    ],
)  # fmt: skip
def test_expressions_of_the_same_parts_but_another_kind_differ(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is not True
    assert equivalent(answer, gold) is not True


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\lceil n/2 \rceil", r"\lfloor (n+1)/2 \rfloor"), (r"\lfloor x + 1 \rfloor", r"\lfloor x \rfloor + 1"),
        (r"\max(a, b)", r"\frac{a + b + |a - b|}{2}"), ("f(1) > f(a+1)", "f(a+1) < f(1)"),
        (r"f(x) \ge 2", r"[2, \infty)"), ("(a)(b)", "(b)(a)"), ("(B) 7", "B"), ("(B) 7", "7"),
        ("(B) red", "(B) a red one"),
    ],
)  # fmt: skip
def test_steps_and_unknown_functions_are_compared_by_what_they_say(gold: str, answer: str) -> None:
    assert equivalent(gold, answer) is True
    assert equivalent(answer, gold) is True


OPTIONS = ["7", "-3", r"\frac{1}{2}", r"\sqrt{3}", r"2^{10}", r"\{1, 2\}", "x = 3", r"x^{2} + 1", "Paris", r"\pi"]
LETTERS = ["(B) {}", "B. {}", "B) {}", r"\textbf{{(B)}}\ {}", r"\text{{(B) }} {}", "Option B: {}"]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_with_its_letter_is_that_option_and_no_other(letter: str, option: str) -> None:
    lettered = letter.format(option)
    for other in OPTIONS:
        verdicts = equivalent(other, lettered), equivalent(lettered, other)
        assert verdicts[0] is verdicts[1]
        assert (verdicts[0] is True) is (other == option), other
