# SPDX-License-Identifier: Apache-2.0
"""cosine_scaled_accuracy_length_reward: accuracy first, length second."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult
from reward_kit.rewards.accuracy_length import cosine_scaled_accuracy_length_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered


def judge(text: str, ground_truth: Any = "4", **settings: Any) -> EvaluateResult:
    return cosine_scaled_accuracy_length_reward(messages=answered(text), ground_truth=ground_truth, **settings)


def padded(answer: str, words: int) -> str:
    return "so " * words + rf"\boxed{{{answer}}}"


def test_a_right_answer_is_better_short_and_a_wrong_one_long() -> None:
    assert judge(padded("4", 0)).score > judge(padded("4", 300)).score > judge(padded("4", 3000)).score
    assert judge(padded("5", 0)).score < judge(padded("5", 300)).score < judge(padded("5", 3000)).score
    assert judge(padded("4", 3000)).score == pytest.approx(0.7 + 0.3 * 0.5)
    assert judge(padded("5", 3000)).score == pytest.approx(0.3 * 0.3)


@given(st.integers(0, 1500), st.integers(0, 1500))
def test_no_length_makes_a_wrong_answer_as_good_as_a_right_one(right: int, wrong: int) -> None:
    assert judge(padded("4", right)).score > judge(padded("5", wrong)).score


def test_metrics_show_the_parts() -> None:
    result = judge(padded("4", 9), max_length=20)
    assert set(result.metrics) == {"combined_reward", "accuracy", "length", "token_count"}
    assert result.metrics["accuracy"].score == 1.0
    assert result.metrics["token_count"].score == 0.5
    assert result.score == pytest.approx(0.7 + 0.3 * result.metrics["length"].score)


def test_values_and_weights_may_leave_the_unit_range() -> None:
    result = judge(padded("5", 0), min_value_wrong=-1, length_weight=2, max_length=10**6)
    assert result.score == pytest.approx(-2, abs=1e-3)
    assert all(0.0 <= metric.score <= 1.0 for metric in result.metrics.values())


def test_what_cannot_be_judged_is_no_verdict() -> None:
    assert not judge(padded("4", 0), ground_truth=None).is_score_valid


def test_extracting_and_comparing_may_be_the_users() -> None:
    assert judge("red", "Red!", compare_fn=lambda said, right: 2.0).metrics["accuracy"].score == 1.0
    assert judge("red", "Red!", compare_fn=lambda said, right: float(said in right.lower())).score > 0.7
    assert judge("It is [4].", extract_fn=lambda text: text.partition("[")[2].partition("]")[0]).score > 0.7


@pytest.mark.parametrize("settings", [{"max_length": 0}, {"length_weight": "x"}, {"token_method": "bytes"}])
def test_a_wrong_parameter_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=f"'{next(iter(settings))}'"):
        judge("4", **settings)
