# SPDX-License-Identifier: Apache-2.0
"""length_reward and cosine_length_reward: where the best length is, how scores fall off, and in any range."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult
from reward_kit.rewards import length
from reward_kit.rewards.length import cosine_length_reward, count_tokens, length_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered


def of(words: int, **settings: Any) -> EvaluateResult:
    return length_reward(messages=answered("word " * words), **settings)


def cosine(words: int, **settings: Any) -> EvaluateResult:
    return cosine_length_reward(messages=answered("word " * words), **settings)


def test_tokens_are_counted_as_asked() -> None:
    assert count_tokens("") == count_tokens(" \n\t") == 0
    assert count_tokens("a b\u00a0c\nd") == 4
    assert count_tokens("don't stop", "words") == 3
    assert count_tokens("ab c", "character") == 4
    with pytest.raises(RewardContractError, match="'token_method' is 'bytes'"):
        count_tokens("a", "bytes")


@given(st.text(alphabet="ab \n\u00a0\u3000é", max_size=60), st.integers(1, 9))
def test_counting_a_stretch_at_a_time_counts_what_stands_between_spaces(text: str, stretch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(length, "_STRETCH", stretch)
        assert count_tokens(text) == len(text.split())


def test_counting_takes_no_more_memory_for_a_longer_text() -> None:
    """Memory that grows with the text leaves the processor's caches, and then counting is no longer linear."""

    def most_memory(words: int) -> int:
        text = "word and " * words
        tracemalloc.start()
        try:
            assert count_tokens(text) == 2 * words
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert most_memory(160_000) < 1.5 * most_memory(20_000)


@pytest.mark.parametrize(
    ("words", "settings", "score", "passed"),
    [
        (100, {"target_length": 100}, 1.0, True),
        (81, {"target_length": 100}, 0.81, True),
        (50, {"target_length": 100}, 0.5, False),
        (150, {"target_length": 100}, 0.5, False),
        (300, {"target_length": 100}, 0.0, False),
        (50, {"target_length": 100, "scaling": "cosine"}, 0.5, False),
        (25, {"target_length": 100, "scaling": "cosine"}, (1 + math.cos(0.75 * math.pi)) / 2, False),
        (10, {"min_length": 10, "max_length": 20}, 1.0, True),
        (20, {"min_length": 10, "max_length": 20}, 1.0, True),
        (5, {"min_length": 10, "max_length": 20}, 0.5, False),
        (25, {"min_length": 10, "max_length": 20}, 0.5, False),
        (25, {"min_length": 20, "max_length": 20}, 0.75, False),
        (5, {"min_length": 10}, 0.5, False),
        (5, {"min_length": 10, "scaling": "cosine"}, 1 - math.cos(math.pi / 4), False),
        (500, {"min_length": 10}, 1.0, True),
        (0, {"max_length": 10}, 0.0, False),
        (15, {"max_length": 10}, 0.5, False),
        (15, {"max_length": 10, "scaling": "cosine"}, math.cos(math.pi / 4), False),
        (99, {"max_length": 10}, 0.0, False),
        (0, {"min_length": 0}, 0.0, False),
        (25, {}, 0.75, True),
        (500, {}, 0.0, True),
    ],
)
def test_the_score_falls_off_from_the_length_that_is_wanted(
    words: int, settings: dict[str, Any], score: float, passed: bool
) -> None:
    result = of(words, **settings)
    assert result.score == pytest.approx(score)
    assert result.metrics["length"].is_score_valid is passed


@given(st.integers(0, 400), st.sampled_from(["linear", "cosine"]), st.floats(-10, 9), st.floats(0.001, 10))
def test_any_range_is_kept_to_and_metrics_stay_within_one(words: int, scaling: Any, low: float, span: float) -> None:
    plain = of(words, target_length=100, scaling=scaling).score
    result = of(words, target_length=100, scaling=scaling, reward_range=[low, low + span])
    assert result.score == pytest.approx(low + span * plain)
    assert all(0.0 <= metric.score <= 1.0 for metric in result.metrics.values())


def test_the_metric_of_another_range_says_where_in_it_the_score_stands() -> None:
    assert of(75, target_length=100, reward_range=[-1, 1]).metrics["length"].score == 0.75
    assert of(75, target_length=100, reward_range=[0.2, 0.6]).metrics["length"].score == pytest.approx(0.5)


@given(st.integers(1, 300), st.integers(0, 300), st.sampled_from(["linear", "cosine"]))
def test_nearer_to_the_target_is_never_worse(target: int, words: int, scaling: Any) -> None:
    nearer = words + (1 if words < target else -1 if words > target else 0)
    better, worse = (of(each, target_length=target, scaling=scaling).score for each in (nearer, words))
    assert better >= worse - 1e-12


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"target_length": 0}, "target_length"),
        ({"target_length": "ten"}, "target_length"),
        ({"min_length": -1}, "min_length"),
        ({"min_length": 5, "max_length": 4}, "max_length"),
        ({"scaling": "log"}, "scaling"),
        ({"reward_range": [1, 0]}, "reward_range"),
        ({"reward_range": [0, 1, 2]}, "reward_range"),
        ({"reward_range": [0, math.nan]}, "reward_range"),
        ({"reward_range": "01"}, "reward_range"),
        ({"token_method": "bytes"}, "token_method"),
    ],
)
def test_a_wrong_parameter_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(RewardContractError, match=f"'{named}'"):
        of(3, **settings)


# ── right answers short, wrong ones long ─────────────────────────────────────────────────────────────────────────────


def test_a_right_answer_earns_most_when_short_and_a_wrong_one_when_long() -> None:
    assert cosine(1, is_correct=True).score == pytest.approx(1.0, abs=1e-5)
    assert cosine(0, is_correct=True).score == cosine(0, is_correct=False).score, "an empty answer is no right one"
    assert cosine(500, is_correct=True).score == pytest.approx(0.75)
    assert cosine(5000, is_correct=True).score == pytest.approx(0.5)
    assert cosine(0, is_correct=False).score == pytest.approx(0.0)
    assert cosine(5000, is_correct=False).score == pytest.approx(0.3)


@given(st.integers(1, 2000), st.integers(0, 2000))
def test_every_right_answer_earns_more_than_any_wrong_one(right: int, wrong: int) -> None:
    assert cosine(right, is_correct=True).score > cosine(wrong, is_correct=False).score


def test_negative_values_work() -> None:
    result = cosine(0, is_correct=False, min_value_wrong=-10, max_value_wrong=-5)
    assert result.score == pytest.approx(-10)
    assert result.metrics["cosine_length"].score == 0.0
    flat = {"min_value_wrong": 2, "max_value_wrong": 2, "min_value_correct": 2, "max_value_correct": 2}
    assert cosine(9, is_correct=True, **flat).score == 2.0


def test_correctness_is_a_threshold_and_a_plain_yes_or_no_comes_first() -> None:
    assert cosine(1, correctness=0.9).metrics["correctness"].score == 1.0
    assert cosine(1, correctness=0.89).metrics["correctness"].score == 0.0
    assert cosine(1, correctness=1.0, is_correct=False).metrics["correctness"].score == 0.0


def test_without_a_word_on_correctness_there_is_no_verdict() -> None:
    result = cosine(1)
    assert not result.is_score_valid and "is_correct" in str(result.reason)


@pytest.mark.parametrize("settings", [{"max_length": 0}, {"min_value_wrong": math.inf}, {"max_value_correct": "much"}])
def test_wrong_values_are_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=f"'{next(iter(settings))}'"):
        cosine(1, is_correct=True, **settings)
