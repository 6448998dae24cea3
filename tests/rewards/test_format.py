# SPDX-License-Identifier: Apache-2.0
"""format_reward: the shape of an answer, and shapes that only look like it."""

from __future__ import annotations

import pytest

from reward_kit.rewards.format import format_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered

GOOD = "<think>\nTwo and two.\n</think>\n<answer>\n4\n</answer>"


def score(text: str, **settings: object) -> float:
    return format_reward(messages=answered(text), **settings).score  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD + "\n",
        GOOD.replace("Two and two.", "Is 1 < 2? Then <b>yes</b>, and </b> too."),
        GOOD.replace("Two and two.", "\n\n  Two\n\nand two.  \n\n"),
        "<think>\na</think>\n<answer>\nb</answer>",
    ],
)
def test_thoughts_then_an_answer_are_the_default(text: str) -> None:
    assert score(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "Sure! " + GOOD,
        GOOD + " I hope this helps.",
        GOOD + GOOD,
        GOOD.replace("<think>\n", "<think>"),
        GOOD.replace("Two and two.\n", ""),
        GOOD.replace("4\n", " \n"),
        GOOD.replace("4", "4</answer> or <answer>5"),
        GOOD.replace("Two", "<answer>\n5\n</answer> Two"),
        GOOD.replace("Two", "<think> Two"),
        "<answer>\n4\n</answer>\n<think>\nTwo and two.\n</think>",
        GOOD.removesuffix("</answer>"),
        GOOD.upper(),
        f"```\n{GOOD}\n```",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    result = format_reward(messages=answered(text))
    assert result.score == 0.0 and result.is_score_valid
    assert not result.metrics["format_check"].is_score_valid


def test_another_format_may_be_asked_for_of_the_whole_or_of_a_part() -> None:
    assert score("yes", format_regex="yes|no") == 1.0
    assert score("yes, sir", format_regex="yes|no") == 0.0
    assert score("oh yes, sir", format_regex="yes|no", require_exact_match=False) == 1.0
    assert score("a\nb", format_regex="a.b") == 1.0, "a dot matches a newline"


def test_what_is_no_pattern_is_an_error_that_names_the_parameter() -> None:
    with pytest.raises(RewardContractError, match="'format_regex' is '\\('"):
        score("yes", format_regex="(")
