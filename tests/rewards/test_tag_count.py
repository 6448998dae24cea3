# SPDX-License-Identifier: Apache-2.0
"""tag_count_reward: tags that are used, and ways to seem to use them."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.tag_count import tag_count_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered


def judge(text: str, *tags: str, **settings: Any) -> EvaluateResult:
    return tag_count_reward(messages=answered(text), required_tags=list(tags or ("think", "answer")), **settings)


def test_each_tag_that_is_used_earns_its_part() -> None:
    assert judge("<think>a</think><answer>b</answer>").score == 0.5
    assert judge("<think>a</think>").score == 0.25
    assert judge('<think kind="deep">a</think>', "think", score_per_tag=0.7).score == 0.7
    assert judge("<a>1</a><b>2</b><c>3</c>", "a", "b", "c", score_per_tag=0.5).score == 1.0


def test_using_a_tag_often_earns_no_more() -> None:
    once, often = judge("<think>a</think>"), judge("<think>a</think>" * 9)
    assert once.score == often.score


@pytest.mark.parametrize(
    "text",
    [
        "<think>a",
        "a</think>",
        "</think>a<think>",
        "<think>a</think></think><think>",
        "<thinking>a</thinking>",
        "<Think>a</Think>",
        "< think>a</ think>",
        "`<think>a</think>`",
        "```xml\n<think>a</think>\n```",
        "~~~\n<think>a</think>\n",
        "````\n```\n<think>a</think>\n```\n````",
        "&lt;think&gt;a&lt;/think&gt;",
    ],
)
def test_what_is_not_opened_and_then_closed_is_not_used(text: str) -> None:
    assert judge(text, "think").score == 0.0


def test_an_unbalanced_tag_takes_away_what_a_good_one_earns() -> None:
    result = judge("<think>a</think><answer>b")
    assert result.score == 0.0 and result.metrics["tag_think"].score == 1.0
    assert judge("<think>a</think><answer>b", require_balanced=False).score == 0.5


def test_tags_after_a_code_block_are_used() -> None:
    assert judge("```\ncode\n```\n<think>a</think>", "think").score == 0.25


def test_metrics_name_each_tag() -> None:
    result = judge("<think>a</think>")
    assert {name: metric.score for name, metric in result.metrics.items()} == {
        "tag_think": 1.0, "tag_answer": 0.0, "overall": 0.25
    }  # fmt: skip
    assert result.is_score_valid, "a low score is a verdict"


@pytest.mark.parametrize("tags", ["think", [], ["<think>"], [3], None])
def test_tags_must_be_names(tags: Any) -> None:
    with pytest.raises(RewardContractError, match="required_tags"):
        tag_count_reward(messages=answered("a"), required_tags=tags)


@pytest.mark.parametrize("value", [0, -1, 2, "x", True])
def test_a_part_must_be_a_share_of_one(value: Any) -> None:
    with pytest.raises(RewardContractError, match="score_per_tag"):
        judge("a", score_per_tag=value)
