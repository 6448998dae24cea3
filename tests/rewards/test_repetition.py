# SPDX-License-Identifier: Apache-2.0
"""Repetition and diversity: what repeats itself is found out, however it is dressed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.rewards.repetition import diversity_reward, get_ngrams, repetition_penalty_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered


def repetition(text: str, **settings: Any) -> float:
    return repetition_penalty_reward(messages=answered(text), **settings).score


def diversity(text: str, **settings: Any) -> float:
    return diversity_reward(messages=answered(text), **settings).score


def test_ngrams_are_runs_of_words() -> None:
    assert get_ngrams("This is a test", 2) == ([("this", "is"), ("is", "a"), ("a", "test")], 3)
    assert get_ngrams("short", 2) == get_ngrams("short", 10**12) == ([], 0)
    assert get_ngrams("他说中文", 2)[1] == get_ngrams("他说中文", 2, "zh")[1] == 3
    assert get_ngrams("ab c", 1, "zh-CN")[0] == [("a",), ("b",), ("c",)]
    with pytest.raises(RewardContractError, match="'n'"):
        get_ngrams("a", 0)


def test_repetition_takes_away_its_share() -> None:
    assert repetition("one two three four five six") == 1.0
    assert repetition("a b c a b c") == pytest.approx(1 - 0.5 * 0.25)
    assert repetition("a b c " * 1000) == pytest.approx(0.5, abs=0.001)
    assert repetition("a b c " * 1000, max_penalty=2) == pytest.approx(-1, abs=0.01), "any range works"


def test_nothing_is_repeated_in_little_or_nothing() -> None:
    assert repetition("yes yes") == 1.0
    assert repetition("") == repetition(" \n") == 0.0


LOOP = "I am sure. "


@pytest.mark.parametrize(
    "dressed",
    [
        LOOP.upper(),
        "I am, sure! ",
        "I  am\n\nsure… ",
        "**I** _am_ `sure` ",
        "\uff29 \uff41\uff4d \uff53\uff55\uff52\uff45. ",
        "I a\u200bm su\u00adre. ",
        "I a\u0301m s\u00fcr\u00e9. ",
        "I_am_sure. ",
        "\u202eI am sure. ",
    ],
)
def test_dressing_a_repetition_up_does_not_hide_it(dressed: str) -> None:
    mixed = (LOOP + dressed) * 50
    assert repetition(mixed) == pytest.approx(repetition(LOOP * 100), abs=0.005)


@pytest.mark.parametrize("text", ["ha" * 2000, "😀" * 2000, "! ? " * 1000, "-" * 2000, "哈哈" * 1000, "\u0e01" * 999])
def test_a_loop_without_words_is_a_loop(text: str) -> None:
    assert repetition(text) < 0.51
    assert diversity(text) < 0.05


def test_diversity_is_a_weighted_share_and_never_above_one() -> None:
    assert diversity("hi") == diversity("all of these words differ") == pytest.approx(1.0)
    assert diversity("a a a a", ngram_sizes=[1]) == 0.25
    assert diversity("a a a a", ngram_sizes=[1, 2]) == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert diversity("a a a a", ngram_sizes=[1, 2], weights=[3, 1]) == pytest.approx((3 / 4 + 1 / 3) / 4)
    assert diversity("   ") == 0.0


@given(st.text(max_size=200), st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True))
def test_scores_and_metrics_stay_within_one(text: str, sizes: list[int]) -> None:
    assert 0.5 <= repetition(text) <= 1.0 or not text.strip()
    result = diversity_reward(messages=answered(text), ngram_sizes=sizes)
    assert 0.0 <= result.score <= 1.0 + 1e-12
    if text.strip():
        assert {f"ngram_{size}" for size in sizes} <= set(result.metrics)


@given(st.lists(st.sampled_from(["red", "blue", "green", "tall"]), min_size=3, max_size=30))
def test_saying_it_all_again_is_never_better(words: list[str]) -> None:
    text = " ".join(words)
    assert repetition(f"{text} {text}") <= repetition(text) + 1e-12
    assert diversity(f"{text} {text}") <= diversity(text) + 1e-12


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ngram_sizes": []}, "ngram_sizes"),
        ({"ngram_sizes": [0]}, "ngram_sizes"),
        ({"ngram_sizes": [2, 2]}, "ngram_sizes"),
        ({"ngram_sizes": "12"}, "ngram_sizes"),
        ({"weights": [1]}, "weights"),
        ({"weights": [1, 2, -1]}, "weights"),
    ],
)
def test_a_wrong_parameter_of_diversity_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(RewardContractError, match=f"'{named}'"):
        diversity("a b c", **settings)


@pytest.mark.parametrize("settings", [{"ngram_size": 0}, {"ngram_size": 1.5}, {"max_penalty": "much"}])
def test_a_wrong_parameter_of_repetition_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=f"'{next(iter(settings))}'"):
        repetition("a b c", **settings)
