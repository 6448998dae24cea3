# SPDX-License-Identifier: Apache-2.0
"""OpenRLHF's `reward_func`, from the file that OpenRLHF loads, and the answer in it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reward_kit.errors import RewardError
from reward_kit.integrations.openrlhf import END_TOKENS, answer_in, reward_func_for, write_reward_func
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
        ("all", "", "all"),
        (PROMPT, PROMPT, ""),
    ],
)
def test_the_answer_is_what_follows_the_prompt(query: str, prompt: str, answer: str) -> None:
    assert answer_in(query, prompt) == answer


# ── a prompt that the tokenizer gives back in another form ───────────────────────────────────────────────────────────

_WORDS = st.sampled_from(
    ["2+2?", "Ω", "Å", "e\u0301", "\u212b", "\u2126", "naïve", "de\u0301ja\u0300 vu", "<|im_end|>", "\n", "x < 3",
     "<b>", "[INST]", "가", "\u1100\u1161", "é", "user", "assistant", "once more and then again"]
)  # fmt: skip
_PROMPTS = st.lists(_WORDS, min_size=1, max_size=30).map(" ".join)
_ANSWERS = st.lists(_WORDS | st.sampled_from(["\\boxed{4}", "<|im_start|>assistant\n", "Answer: 4"]), max_size=8).map(
    " ".join
)
_ENDS = st.sampled_from(["|", "cafe\u0301", "caf\u00e9", "\u1112\u1161\u11ab", "\u212b"])
"""How a prompt ends: also in letters of several characters, all of which are the prompt's."""

_LONG_END = (
    "What comes out where one adds four to nothing at all? Say it, put it into a box, and add nothing else. " * 2
)


def normalised(prompt: str) -> str:
    return unicodedata.normalize("NFC", prompt)


def decomposed(prompt: str) -> str:
    return unicodedata.normalize("NFD", prompt)


def spaced(prompt: str) -> str:
    return normalised(prompt).replace("<|im_end|>", "<|im_end|> ")


def cut(prompt: str) -> str:
    whole = normalised(prompt)
    return whole[len(whole) // 3 :]


@pytest.mark.parametrize("form", [str, normalised, decomposed, spaced, cut])
@pytest.mark.parametrize("before", ["", " ", "<s>", "<s> ", "<|begin_of_text|>", "<bos>\n"])
@given(prompt=_PROMPTS, end=_ENDS, answer=_ANSWERS)
def test_what_is_judged_is_the_answer_and_never_the_prompt(
    form: Callable[[str], str], before: str, prompt: str, end: str, answer: str
) -> None:
    is_cut = form is cut
    answer, prompt = answer.strip(), f"{prompt} {_LONG_END if is_cut else ''}{end}"
    assume(not answer.endswith(END_TOKENS))
    read = form(prompt)
    found = answer_in(before + read + answer, prompt)
    assert found == answer or (is_cut and answer.endswith(found)), found


@pytest.mark.parametrize(
    "query",
    [
        "Another prompt. \\boxed{4}",
        "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n\\boxed{4}",
        "I was asked: What is 2 + 2? Answer: \\boxed{4}",
        "2 + 2? Answer: \\boxed{4}",  # what is left of the prompt is too short to be sure
        "",
    ],
)
def test_a_prompt_that_is_not_there_fails_the_item(query: str) -> None:
    prompt = "For example: \\boxed{4} is a box. What is 2 + 2? Answer: "
    with pytest.raises(RewardError, match="prompt is not found"):
        answer_in(query, prompt)
    reward_func = reward_func_for(trainer_rewards.exact, failed_score=-1.0, workers=0)
    assert reward_func([query, "q4"], [prompt, "q"], ["4", "4"])["rewards"] == [-1.0, 1.0], "and only this one"
