# SPDX-License-Identifier: Apache-2.0
"""multiple_choice_reward: a choice by any label or by its text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.multiple_choice import multiple_answers_reward, multiple_choice_reward
from tests.rewards.answers import answered

CITIES = ["London", "New York", "New York City", "Oslo"]
PROMPT = "Which is the capital of Norway?\nA) London\nB) New York\nC) New York City\nD) Oslo\n"


def judge(answer: str, truth: Any = "D", choices: Any = None, question: str = PROMPT) -> EvaluateResult:
    return multiple_choice_reward(answered(answer, question), ground_truth=truth, choices=choices)


RIGHT = [
    "D", "d", "(D)", "d)", "D.", "**D**", "Oslo", "oslo.", "D) Oslo", r"\boxed{D}", r"\boxed{\text{Oslo}}", "#### D",
    "<answer>Oslo</answer>", "<answer>d</answer>", "The answer is D.", "The answer is (d).", "Answer: D",
    "The correct answer is: Oslo", "A is in England, so the answer is (D).", "I'd choose option D, far north.",
    "The capital of Norway is Oslo.", "<think>A? B?</think>D", "The answer is A. Wait, no: the answer is D.",
    "A good question. The answer is D",
]  # fmt: skip
WRONG = [
    "", "A", "B", "C", "London", "New York City", "A or D", "Aa", "D'Artagnan said so.", "The answer is A or D.", "(A) and (D)", "I do not know.",  # noqa: E501 - one answer per entry
    "<think>D</think>", r"\boxed{A}", "E", "The answer is B, not because of Oslo.", "A D", "London, Oslo",
]  # fmt: skip


@pytest.mark.parametrize(
    "choices", [None, CITIES, dict(zip("ABCD", CITIES, strict=True))], ids=["prompt", "list", "dict"]
)
@pytest.mark.parametrize("answer", RIGHT)
def test_a_choice_is_read_by_label_and_by_text(answer: str, choices: Any) -> None:
    for truth in ("D", "Oslo", "(d)", ["D"]):
        result = judge(answer, truth, choices)
        assert result.score == 1.0, result.reason


@pytest.mark.parametrize("choices", [None, CITIES], ids=["prompt", "list"])
@pytest.mark.parametrize("answer", WRONG)
def test_another_choice_several_or_none_is_wrong(answer: str, choices: Any) -> None:
    result = judge(answer, "D", choices)
    assert result.score == 0.0 and result.is_score_valid


def test_the_longer_text_is_the_one_meant() -> None:
    assert judge("It is New York City.", "C", CITIES).score == 1.0
    assert judge("It is New York.", "B", CITIES).score == 1.0


def test_labels_may_be_numbers_roman_or_words() -> None:
    prompt = "Pick one:\n1. red\n2. green\n3. blue"
    assert judge("The answer is 2.", "2", question=prompt).score == 1.0
    assert judge("There are 2 colours, and it is blue.", "3", question=prompt).score == 1.0
    assert judge("(iii)", "iii", {"i": "red", "ii": "green", "iii": "blue"}).score == 1.0
    assert judge("I say true.", "true", {"true": "it holds", "false": "it does not"}).score == 1.0
    assert judge("true", "true", {"true": "it holds", "false": "it does not"}).score == 1.0
    assert judge("K", "K", {"label": ["K", "L"], "text": ["one", "two"]}).score == 1.0


def test_the_index_counts_from_zero_for_a_list() -> None:
    assert judge("D", 3, CITIES).score == 1.0
    assert judge("B", 3, CITIES).score == 0.0
    assert judge("The answer is 4", 0, ["4", "5", "6"]).score == 1.0


def test_letters_beyond_j_without_options() -> None:
    assert judge("The answer is (M).", "M", question="?").score == 1.0


@pytest.mark.parametrize(
    ("truth", "choices"),
    [(None, CITIES), ("", CITIES), ("Z", CITIES), (9, CITIES), ("Rome", CITIES), ("A", ["x", "x"]), ("A", ["x"]),
     ("A", ["Aa", "AA", "b"]), ("A", []), ("A", "xy"), ("A", ["x", None]), ("A", {"A": "x", "a": "y"}),
     (["A", "B"], CITIES), (True, CITIES)],
)  # fmt: skip
def test_a_ground_truth_that_is_no_option_is_no_verdict(truth: Any, choices: Any) -> None:
    assert not judge("A", truth, choices).is_score_valid


@pytest.mark.parametrize(
    ("answer", "truth", "score"),
    [
        ("A", "A", 1.0), ("C", "A", 1.0), ("A", "C", 1.0), ("C. 12", 2, 1.0), ("12", "A", 1.0), ("12", "C", 1.0),
        ("It has 12 ribs.", "C", 1.0), ("A or C", "A", 1.0), ("The answer is A or C.", "12", 1.0),
        ("C", ["A", "C"], 1.0),
        ("B", "A", 0.0), ("A or B", "A", 0.0), ("A", "B", 0.0), ("C", "B", 0.0), ("B", "B", 1.0), ("12", "B", 0.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("choices", [["12", "20", "12", "30"], None], ids=["list", "prompt"])
def test_each_label_of_an_option_that_is_there_twice_counts(
    answer: str, truth: Any, score: float, choices: Any
) -> None:
    prompt = "How many ribs has a person?\nA) 12\nB) 20\nC) 12\nD) 30\n"
    if choices is None and isinstance(truth, int):
        truth = "ABCD"[truth]
    result = judge(answer, truth, choices, prompt)
    assert result.is_score_valid and result.score == score, result.reason


def test_the_reason_names_each_right_label_of_an_option_that_is_there_twice() -> None:
    assert judge("C", "A", ["12", "20", "12"]).reason == "Expected A or C, the choice is C."


@given(st.text(max_size=200))
def test_no_answer_stops_it(answer: str) -> None:
    assert judge(answer).score in (0.0, 1.0)


# ── several right options ────────────────────────────────────────────────────────────────────────────────────────────

FISH = ["trout", "eel", "whale", "otter"]


@pytest.mark.parametrize(
    ("answer", "precision", "recall"),
    [
        ("Answer: A, B", 1.0, 1.0),
        ("The answer is A and B.", 1.0, 1.0),
        ("Answer: A", 1.0, 0.5),
        ("Answer: A, C", 0.5, 0.5),
        ("Answer: C", 0.0, 0.0),
        ("\\boxed{A, B, C, D}", 0.5, 1.0),
        ("I cannot say.", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_the_score_is_the_share_of_the_chosen_options_that_are_right(
    answer: str, precision: float, recall: float
) -> None:
    said = [Message(role="assistant", content=answer)]
    result = multiple_answers_reward(said, ground_truth=["A", "eel"], choices=FISH)
    assert (result.score, result.metrics["recall"].score) == (precision, recall)
    assert result.metrics["all_right"].score == float(precision == recall == 1.0)


@pytest.mark.parametrize("answer", ["Answer: A, B", "Answer: C, B", "Answer: A, B, C"])
def test_an_option_that_is_there_twice_is_one_of_several_right_ones(answer: str) -> None:
    said = [Message(role="assistant", content=answer)]
    result = multiple_answers_reward(said, ground_truth=["C", "B"], choices=["trout", "eel", "trout", "otter"])
    assert result.metrics["all_right"].score == 1.0 and result.score == 1.0


@pytest.mark.parametrize("truth", [None, [], ["E"], "shark"])
def test_right_options_that_are_none_give_no_verdict(truth: Any) -> None:
    said = [Message(role="assistant", content="Answer: A")]
    assert not multiple_answers_reward(said, ground_truth=truth, choices=FISH).is_score_valid
