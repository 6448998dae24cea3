# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF's `reward_func`, from the file that OpenRLHF loads, and the answer in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reward_kit.errors import RewardError
from reward_kit.integrations.openrlhf import answer_in, reward_func_for, write_reward_func
from reward_kit.utils.module_loader import load_function
from tests.integrations import trainer_rewards

PROMPT = "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"


def test_one_query_gets_a_number_and_several_a_list(tmp_path: Path) -> None:
    file = write_reward_func(
        "tests.integrations.trainer_rewards:exact", tmp_path / "reward_func.py", failed_score=0.0, workers=1
    )
    reward_func = load_function(f"{file}:reward_func")
    assert reward_func([PROMPT + "4<|im_end|>\n"], [PROMPT], ["4"]) == {
        "rewards": 1.0, "scores": 1.0, "extra_logs": {"judged": 1.0},
    }  # fmt: skip
    several = reward_func([PROMPT + "4", PROMPT + "5"], [PROMPT] * 2, ["4", "4"])
    assert several == {"rewards": [1.0, 0.0], "scores": [1.0, 0.0], "extra_logs": {"judged": [1.0, 1.0]}}


def test_failures_and_lists_that_do_not_fit() -> None:
    reward_func = reward_func_for(trainer_rewards.perilous, failed_score=-2.0, workers=0)
    assert reward_func(["raise"], [""], [None])["rewards"] == -2.0
    assert reward_func(["raise", "fine"], ["", ""], [None] * 2)["extra_logs"] == {"judged": [0.0, 1.0]}
    with pytest.raises(ValueError, match="1 queries came with 2 prompts"):
        reward_func(["a"], ["p", "p"], ["l"])
    with pytest.raises(RewardError):
        reward_func_for(trainer_rewards.perilous, failed_score=None, workers=0)(["raise"], [""], [None])


@pytest.mark.parametrize(
    ("query", "prompt", "answer"),
    [
        (PROMPT + "4<|im_end|>", PROMPT, "4"),
        (PROMPT + "4</s> </s>\n", PROMPT, "4"),
        ("<s>" + PROMPT + "4", PROMPT, "4"),
        ("no prompt here", PROMPT, "no prompt here"),
        ("all", "", "all"),
        (PROMPT, PROMPT, ""),
    ],
)
def test_the_answer_is_what_follows_the_prompt(query: str, prompt: str, answer: str) -> None:
    assert answer_in(query, prompt) == answer
