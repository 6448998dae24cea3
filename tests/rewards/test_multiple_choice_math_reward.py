# SPDX-License-Identifier: Apache-2.0
"""multiple_choice_math_reward: one letter, and the right one."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.multiple_choice_math_reward import extract_mcq_option, multiple_choice_math_reward


def judge(text: str, ground_truth: Any) -> EvaluateResult:
    return multiple_choice_math_reward([Message(role="assistant", content=text)], ground_truth=ground_truth)


@pytest.mark.parametrize(
    "text",
    [
        "B",
        "(B)",
        "(b)",
        r"\boxed{B}",
        r"\boxed{\text{(B)}}",
        r"$\boxed{\textbf{(B)}\ 12}$",
        "The answer is B.",
        "The correct answer is **(B)**",
        "Answer: B",
        "(A) is too small, (C) too large, so the answer is (B) 12.",
        "A fair coin has two sides. Option B",
        "<answer>B</answer>",
        "<think>A? No, C.</think>B",
        "#### B",
        "b",
        "b)",
        "b.",
        "(b)",
        "b) 12 cm",
        "The answer is b.",
        "The answer is b",
        "The correct option is b) 12.",
        "Answer: b",
        r"\boxed{b}",
        "<answer>b</answer>",
        "**b**",
        "The answer is b because the others are too large.",
        "The answer is A. Wait, no, it is B.",
        "The answer is (A). I made a mistake, it should be (B).",
        "It is not A, so B.",
        "A is incorrect. B",
        "We can rule out A. B is left.",
    ],
)
def test_the_right_letter_is_found(text: str) -> None:
    result = judge(text, "B")
    assert result.score == 1.0 and result.metrics["mcq_comparison"].is_score_valid, result.reason


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "(C)",
        "",
        "none of them",
        "The answer is A.",
        r"\boxed{D}",
        "Because of it",
        "a",
        "The answer is a number.",
        "The answer is not B.",
        "B is wrong.",
        "It is a bad day",
        "b + c",
    ],
)
def test_another_letter_or_none_is_wrong(text: str) -> None:
    result = judge(text, "(B)")
    assert (result.score, result.is_score_valid) == (0.0, True)


@pytest.mark.parametrize("text", ["A or B", "(A), (B), (C), (D)", "The answer is A or B", r"\boxed{A, B}"])
def test_naming_several_is_no_choice(text: str) -> None:
    result = judge(text, "B")
    assert result.score == 0.0 and "ambiguous_generated_mcq" in result.metrics


def test_a_worked_reply_can_be_the_ground_truth() -> None:
    assert judge("B", [{"role": "assistant", "content": "So the answer is (B)."}]).score == 1.0


@pytest.mark.parametrize("gold", [None, "", "42", "A or B"])
def test_without_one_right_letter_there_is_no_verdict(gold: Any) -> None:
    assert not judge("B", gold).is_score_valid


def test_options_are_listed_once_and_in_order() -> None:
    assert extract_mcq_option("(C) rather than [a] or {C}") == [("(C)", "C"), ("[a]", "A")]
    assert extract_mcq_option("A dog and a cat") == []
    assert extract_mcq_option("I think D.") == [("D.", "D")]
