# SPDX-License-Identifier: Apache-2.0
"""Texts compared as texts: equal, contained, matching a pattern, sharing words."""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult
from reward_kit.rewards.text_match import contains_reward, exact_match_reward, regex_reward, token_f1_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered

REWARDS = [exact_match_reward, contains_reward, token_f1_reward]
NO_TEXT: list[Any] = [None, "", "  ", [], [""], ["a", None], {}, {"text": "a"}, True, float("nan"), [["a"]], type]


def is_no_verdict(result: EvaluateResult) -> bool:
    return not result.is_score_valid and "error" in result.metrics


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("truth", NO_TEXT, ids=repr)
def test_a_ground_truth_that_is_no_text_is_no_verdict(reward: Any, truth: Any) -> None:
    assert is_no_verdict(reward(answered("a"), ground_truth=truth))


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("answer", ["", "   ", "<think>Paris</think>", "<think>Paris"])
def test_an_empty_answer_is_wrong_and_a_thought_is_none(reward: Any, answer: str) -> None:
    result = reward(answered(answer), ground_truth="Paris")
    assert result.score == 0.0 and result.is_score_valid


@pytest.mark.parametrize("reward", REWARDS)
def test_the_right_text_may_be_a_number_one_of_several_or_a_conversation(reward: Any) -> None:
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "42"}]
    for truth in (42, "42", ["42"], turns):
        assert reward(answered("42"), ground_truth=truth).score == 1.0


# ── equal ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "truth", "settings", "score"),
    [
        ("Paris", "Paris", {}, 1.0),
        (" Paris\n", "Paris", {}, 1.0),
        ("New  York\nCity", "New York City", {}, 1.0),
        ("cafe\u0301", "caf\u00e9", {}, 1.0),
        ("paris", "Paris", {}, 0.0),
        ("paris", "Paris", {"ignore_case": True}, 1.0),
        ("Paris.", "Paris", {}, 0.0),
        ("Paris.", "Paris", {"ignore_punctuation": True}, 1.0),
        ("It is Paris", "Paris", {}, 0.0),
        ("It is <answer>Paris</answer>", "Paris", {"extract": True}, 1.0),
        ("London", ["Paris", "London"], {}, 1.0),
    ],
)
def test_exact_match(answer: str, truth: Any, settings: dict[str, Any], score: float) -> None:
    assert exact_match_reward(answered(answer), ground_truth=truth, **settings).score == score


# ── contained ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "truth", "settings", "score"),
    [
        ("The capital is Paris.", "paris", {}, 1.0),
        ("The capital is Paris.", "paris", {"ignore_case": False}, 0.0),
        ("a party", "art", {}, 0.0),
        ("a party", "art", {"whole_words": False}, 1.0),
        ("a party of art", "art", {}, 1.0),
        ("15", "5", {}, 0.0),
        ("1,500", "500", {}, 0.0),
        ("It costs 5.2", "5", {}, 0.0),
        ("It costs 5.", "5", {}, 1.0),
        ("-5", "5", {}, 1.0),
        ("snake_case", "snake", {}, 0.0),
        ("日本の首都は東京です", "東京", {}, 1.0),
        ("C++ and C#", "C++", {}, 1.0),
        ("Paris and Rome", ["Paris", "Rome"], {}, 1.0),
        ("Paris and Oslo", ["Paris", "Rome"], {}, 0.0),
        ("Paris and Oslo", ["Paris", "Rome"], {"require": "any"}, 1.0),
        ("New\nYork", "new  york", {}, 1.0),
    ],
)
def test_contains(answer: str, truth: Any, settings: dict[str, Any], score: float) -> None:
    assert contains_reward(answered(answer), ground_truth=truth, **settings).score == score


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(RewardContractError, match=r"'require' is 'most'"):
        contains_reward(answered("a"), ground_truth="a", require="most")  # type: ignore[arg-type]  # on purpose


# ── a pattern ────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestPatterns:
    @pytest.fixture(autouse=True)
    def _needs_re2(self) -> None:
        pytest.importorskip("re2", reason="the extra `regex` is not installed")

    @pytest.mark.parametrize(
        ("answer", "settings", "score"),
        [
            ("x = 12", {"pattern": r"\d+"}, 1.0),
            ("x = 12", {"pattern": r"\d+", "match": "full"}, 0.0),
            (" 12\n", {"pattern": r"\d+", "match": "full"}, 1.0),
            ("YES", {"pattern": "yes"}, 0.0),
            ("YES", {"pattern": "yes", "ignore_case": True}, 1.0),
            ("a\nb", {"pattern": "a.b"}, 0.0),
            ("a\nb", {"pattern": "(?s)a.b"}, 1.0),
            ("x = 12", {"ground_truth": r"\d+"}, 1.0),
            ("", {"pattern": "a"}, 0.0),
            ("<think>12</think> no", {"pattern": r"\d"}, 0.0),
            ("lone \ud800 12", {"pattern": r"\d+"}, 1.0),
            ("naïve", {"pattern": "na.ve", "match": "full"}, 1.0),
        ],
    )
    def test_a_pattern_is_searched_or_matched(self, answer: str, settings: dict[str, Any], score: float) -> None:
        assert regex_reward(answered(answer), **settings).score == score

    @pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*a){20}$"])
    def test_no_answer_makes_it_slow(self, pattern: str) -> None:
        # Python's own `re` would not come back within a lifetime: that this one ends is the test.
        assert regex_reward(answered("a" * 20_000 + "!"), pattern=pattern).score == 0.0

    @pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "(?<!b)a", "", 7, "a" * 10_001])
    def test_a_pattern_that_cannot_be_used_is_an_error_and_no_verdict_in_the_ground_truth(self, pattern: Any) -> None:
        with pytest.raises(RewardContractError):
            regex_reward(answered("a"), pattern=pattern)
        assert is_no_verdict(regex_reward(answered("a"), ground_truth=pattern))

    def test_no_pattern_is_no_verdict(self) -> None:
        assert is_no_verdict(regex_reward(answered("a")))


# ── words in common ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "truth", "f1", "exact"),
    [
        ("Denver Broncos", "Denver Broncos", 1.0, 1.0),
        ("the Denver Broncos!", "denver broncos", 1.0, 1.0),
        ("Broncos", "Denver Broncos", 2 / 3, 0.0),
        ("broncos broncos", "Broncos", 2 / 3, 0.0),
        ("Carolina", "Denver Broncos", 0.0, 0.0),
        ("the", "a", 1.0, 1.0),
        ("it", "the", 0.0, 0.0),
        ("", {"text": []}, 1.0, 1.0),
        ("Broncos", {"text": []}, 0.0, 0.0),
        ("Broncos", {"text": ["Denver Broncos", "Broncos"], "answer_start": [1, 8]}, 1.0, 1.0),
    ],
)
def test_token_f1_has_the_values_of_squad(answer: str, truth: Any, f1: float, exact: float) -> None:
    result = token_f1_reward(answered(answer), ground_truth=truth)
    assert result.score == pytest.approx(f1) and result.metrics["exact_match"].score == exact


def squad_f1(gold: str, prediction: str) -> float:
    """The definition, written down a second time: its steps in SQuAD's order, a character at a time."""

    def words(text: str) -> list[str]:
        bare = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split()).split()

    said, right = words(prediction), words(gold)
    if not said or not right:
        return float(said == right)
    common = Counter(said) & Counter(right)
    if not sum(common.values()):
        return 0.0
    precision, recall = sum(common.values()) / len(said), sum(common.values()) / len(right)
    return 2 * precision * recall / (precision + recall)


VOCABULARY = ["the", "a", "an", "Cat", "cat,", "dog!", "o'clock", "x-y", "ünï", "3.5", "A.", "THE"]
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1).map(" ".join)


@given(answer=WORDS, truth=WORDS)
def test_token_f1_equals_the_definition(answer: str, truth: str) -> None:
    assert token_f1_reward(answered(answer), ground_truth=truth).score == pytest.approx(squad_f1(truth, answer))
