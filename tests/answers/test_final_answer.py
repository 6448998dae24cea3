# SPDX-License-Identifier: Apache-2.0
"""Finding the answer that a text gives."""

from __future__ import annotations

import pytest

from reward_kit.answers.final_answer import marked_answers, stated_answer, unboxed


@pytest.mark.parametrize(
    ("text", "answer", "source"),
    [
        ("x <answer> 7 </answer> y", "7", "tag"),
        (r"\boxed{1} then \boxed{\frac{1}{2}}.", r"\frac{1}{2}", "boxed"),
        (r"\boxed{1}, \boxed{2} and $\boxed{3}$", "1, 2, 3", "boxed"),
        (r"\boxed{5} or \boxed{6}", "5 or 6", "boxed"),
        (r"\boxed{a \{ b}", r"a \{ b", "boxed"),
        ("so\n#### 1,000\n", "1,000", "hashes"),
        ("The answer is 3.14.", "3.14", "phrase"),
        ("**Answer:** 72", "72", "phrase"),
        (r"The final answer is $\frac{1}{2}$ because of it", r"\frac{1}{2}", "phrase"),
        ("The answer is 20 - 8 = 12 dollars.", "12 dollars", "phrase"),
        ("The answer is x = 5", "x = 5", "phrase"),
        ("We find $x^2$ and then $x + 1$.", "x + 1", "last line"),
        ("3 + 4 = 7", "7", "last line"),
        ("so there are 5 apples\n\n", "5", "last line"),
        ("<think>\\boxed{1}</think> 2", "2", "last line"),
    ],
)
def test_the_answer_is_what_the_text_marks_or_ends_with(text: str, answer: str, source: str) -> None:
    found = stated_answer(text)
    assert found is not None
    assert (found.text, found.source) == (answer, source)


@pytest.mark.parametrize(
    "text", ["", "   \n", "<think>5", "I would rather not say anything about this at all, thanks. " * 3]
)
def test_some_texts_give_none(text: str) -> None:
    assert stated_answer(text) is None


def test_marks_are_listed_in_order_with_their_place() -> None:
    first, second = marked_answers(r"a \boxed{1} b \boxed{2}")
    assert (first.text, second.text) == ("1", "2")
    assert first.end < second.start


def test_unboxed_leaves_other_texts_alone() -> None:
    assert unboxed("x + 1") == "x + 1"
    assert unboxed(r"so \boxed{2}") == "2"
    assert unboxed(r"\boxed{2") == r"\boxed{2"
