# SPDX-License-Identifier: Apache-2.0
"""list_comparison_math_reward: the same items, in any order unless order matters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.list_comparison_math_reward import (
    extract_number_list,
    list_comparison_math_reward,
    parse_number_list_from_string,
)


def judge(text: str, ground_truth: Any, **settings: Any) -> EvaluateResult:
    return list_comparison_math_reward([Message(role="assistant", content=text)], ground_truth=ground_truth, **settings)


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        (r"The divisors are \boxed{1, 2, 3, 6}.", "6, 3, 2, 1"),
        ("1, 2, 3", "[3, 2, 1]"),
        ("$x = 1, 2$", "1,2"),
        (r"\boxed{\{-2, \frac{1}{2}\}}", "0.5, -2"),
        ("The answer is 1, 2 and 3.", "1, 2, 3"),
        (r"First \boxed{1, 2}, no: \boxed{2, 3}", "2, 3"),
        (r"\boxed{1000, 2000}", "2000, 1000"),
        (r"\boxed{\sqrt{4}, 3}", "2, 3"),
        (r"\boxed{5}", "5"),
        ("<think>1, 2</think>3, 4", "4, 3"),
    ],
)
def test_the_same_items_are_right(text: str, gold: str) -> None:
    result = judge(text, gold)
    assert result.score == 1.0 and result.metrics["list_comparison"].is_score_valid, result.reason


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        (r"\boxed{1, 2}", "1, 2, 3"),
        (r"\boxed{1, 2, 3, 4}", "1, 2, 3"),
        (r"\boxed{1, 2.0000001}", "1, 2"),
        ("I do not know.", "1, 2"),
        ("", "1, 2"),
        (r"\boxed{12}", "1, 2"),
    ],
)
def test_other_items_are_wrong(text: str, gold: str) -> None:
    result = judge(text, gold)
    assert (result.score, result.is_score_valid) == (0.0, True)


def test_order_counts_when_it_matters() -> None:
    assert judge(r"\boxed{2, 1}", "1, 2", order_matters=True).score == 0.0
    assert judge(r"\boxed{1, 2}", "1, 2", order_matters=True).score == 1.0
    assert judge(r"\boxed{1, 1, 2}", "1, 2", order_matters=True).score == 0.0
    assert judge(r"\boxed{1, 1, 2}", "1, 2").score == 1.0


@pytest.mark.parametrize("gold", [None, "", []])
def test_without_a_list_to_compare_with_there_is_no_verdict(gold: Any) -> None:
    result = judge(r"\boxed{1}", gold)
    assert not result.is_score_valid and "error" in result.metrics


def test_the_last_message_must_be_the_assistants() -> None:
    result = list_comparison_math_reward([Message(role="user", content="1")], ground_truth="1")
    assert result.score == 0.0 and "error" in result.metrics


def test_lists_are_read_as_floats() -> None:
    assert parse_number_list_from_string("1, 2.5,-3") == [1.0, 2.5, -3.0]
    assert parse_number_list_from_string("$1,2$") == [1.0, 2.0]
    assert parse_number_list_from_string("") is None
    assert parse_number_list_from_string("1, x") is None
    assert extract_number_list(r"$1, 2$ and $3$") == [[1.0, 2.0], [3.0]]
    assert extract_number_list("nothing here") == []


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_any_order_of_any_list_is_the_list(numbers: list[int], random: Any) -> None:
    shuffled = random.sample(numbers, len(numbers))
    assert judge(f"\\boxed{{{', '.join(map(str, shuffled))}}}", ", ".join(map(str, numbers))).score == 1.0
