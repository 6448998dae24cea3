# SPDX-License-Identifier: Apache-2.0
"""The verdict is the same whichever of two answers is the right one, formulas, talk or neither."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reward_kit.mathematics.math_verify import worth_asking
from reward_kit.rewards.math import answers_match
from tests.mathematics.test_undefined import ANSWERS, TERMS

WORDS = [
    "apples", "metres", "cm", "hours", "the", "is", "not", "no", "yes", "true", "false", "NaN", "none", "undefined",
    "infinity", "or", "and", "odd", "even", "red", "blue", "convergent", "diverges", "Paris", "dollars", "answer",
    "cannot", "know", "error", "solution", "integer", "when", "for", "all", "therefore", "Traceback",
]  # fmt: skip
SIGNS = [
    ":", ",", ";", "=", "<", "(", ")", "[", "]", "{", "}", "%", "$", "?", "!", "^", "_", "/", "*", "-", ".", "|", "\\",
    r"\text{", r"\cup", r"\frac", r"\pm", r"\neq", r"\in", r"\boxed{",
]  # fmt: skip
TALK = [
    "the answer is {}", "I doubt that the answer is {}.", "{} is both necessary and sufficient for this", "{} is true",
    "true : {}", "no, {}", "Yes: {}", "{} or none", "We have {} = 3 and therefore the series converges to {}.",
    "print(solve({}))\nNameError: name 'solve' is not defined", "{} apples and {} pears",
    "the limit is {}, and it is red",
]  # fmt: skip
PIECES = st.one_of(st.sampled_from(WORDS), st.sampled_from(SIGNS), TERMS)
TEXTS = st.one_of(
    ANSWERS,
    st.lists(PIECES, min_size=1, max_size=6).map(" ".join),
    st.builds(lambda form, answer: form.replace("{}", answer), st.sampled_from(TALK), ANSWERS),
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts; most often the second is the first with something put in, or a sentence about it."""
    text = draw(TEXTS)
    at = draw(st.integers(0, len(text)))
    other = st.one_of(
        TEXTS,
        PIECES.map(lambda piece: text[:at] + piece + text[at:]),
        PIECES.map(lambda piece: f"{text} {piece}"),
        st.sampled_from(TALK).map(lambda form: form.replace("{}", text)),
    )
    return text, draw(other)


@settings(max_examples=500)
@given(pairs())
@example(("true", "true : NaN"))
@example(("is", "i!s"))
@example(("81.0", "SyntaxError: unexpected end of the file while parsing"))
@example(("4, I apologize for the errors that are still there", "3"))
@example(("all", r"\arcsin(1/0) or none"))
@example(("even", "odd : there are no such numbers, I think 5"))
@example(("x", "the answer is x"))
@example((r"R = 1 \text{ is both necessary and sufficient}", "1"))
def test_the_verdict_is_the_same_both_ways(pair: tuple[str, str]) -> None:
    if not worth_asking(*pair):
        assert answers_match(*pair) is answers_match(*pair[::-1])


@pytest.mark.parametrize(
    ("text", "other", "verdict"),
    [
        ("x", "the answer is x", True),
        ("12", "I am sorry, but the program ended with an error again", False),
        ("1", r"R = 1 \text{ is both necessary and sufficient}", None),
        ("0", r"R = 1 \text{ is both necessary and sufficient}", False),
        ("odd", "f(1) is larger than all of the others", False),
        ("we cannot tell this from 3 or 4 here", "the program ended with error 7 in its line 3", None),
    ],
)
def test_talk_is_another_answer_than_one_that_says_something(text: str, other: str, verdict: bool | None) -> None:
    assert answers_match(text, other) is verdict
    assert answers_match(other, text) is verdict


@pytest.mark.parametrize("fraction", [r"\frac.3", r"\frac1.5", r"\frac1,000", r"\frac 1e5", r"\binom.5{2}"])
def test_a_fraction_without_braces_has_digits_only(fraction: str) -> None:
    assert answers_match("2", fraction) is not True
    assert answers_match(fraction, "2") is not True


def test_a_full_stop_ends_a_fraction_without_braces() -> None:
    assert answers_match(r"\frac{1}{2}, 3", r"\frac12., 3") is True
