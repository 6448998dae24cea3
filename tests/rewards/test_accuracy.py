# SPDX-License-Identifier: Apache-2.0
"""accuracy_reward: right or not, found and compared in ways that can be replaced."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.accuracy import accuracy_reward


def judge(text: str, ground_truth: Any, **settings: Any) -> EvaluateResult:
    return accuracy_reward([Message(role="assistant", content=text)], ground_truth=ground_truth, **settings)


@pytest.mark.parametrize(
    ("text", "gold", "score"),
    [
        ("The answer is 3.14159", "3.14159", 1.0),
        ("The answer is 3.149999", "3.14159", 0.0),
        ("The answer is 20", "25", 0.0),
        ("The answer is London or Paris", "Paris", 0.0),
        ("Paris", "paris", 1.0),
        (r"\boxed{\frac{1}{2}}", "0.5", 1.0),
        ("", "5", 0.0),
        ("4", [{"role": "assistant", "content": "The answer is 4."}], 1.0),
    ],
)
def test_an_answer_is_right_or_not(text: str, gold: Any, score: float) -> None:
    result = judge(text, gold)
    assert (result.score, result.is_score_valid) == (score, True), result.reason
    assert result.metrics["accuracy"].score == score


def test_finding_and_comparing_can_be_replaced() -> None:
    def shout(text: str) -> str:
        return text.upper()

    result = judge("half", "HALF!", extract_fn=shout, compare_fn=lambda answer, gold: 0.5 if answer in gold else 0.0)
    assert result.score == 0.5
    assert result.metrics["answer_extraction"].reason == "'HALF'"


def test_without_a_right_answer_there_is_no_verdict() -> None:
    assert not judge("4", None).is_score_valid
    assert not judge("4", []).is_score_valid


def test_the_last_message_must_be_the_assistants() -> None:
    result = accuracy_reward([Message(role="user", content="4")], ground_truth="4")
    assert result.score == 0.0 and not result.metrics["accuracy"].is_score_valid
