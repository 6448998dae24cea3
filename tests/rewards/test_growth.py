# SPDX-License-Identifier: Apache-2.0
"""Rewards that read a text take work in proportion to its length, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.rewards.accuracy import accuracy_reward
from reward_kit.rewards.accuracy_length import cosine_scaled_accuracy_length_reward
from reward_kit.rewards.format import format_reward
from reward_kit.rewards.ifeval import ifeval_reward
from reward_kit.rewards.json_schema import json_schema_reward
from reward_kit.rewards.length import cosine_length_reward, length_reward
from reward_kit.rewards.list_comparison_math_reward import list_comparison_math_reward
from reward_kit.rewards.math import math_reward
from reward_kit.rewards.multiple_choice import multiple_choice_reward
from reward_kit.rewards.multiple_choice_math_reward import multiple_choice_math_reward
from reward_kit.rewards.overlap import bleu_reward, rouge_reward
from reward_kit.rewards.reasoning_steps import reasoning_steps_reward
from reward_kit.rewards.repetition import repetition_penalty_reward
from reward_kit.rewards.tag_count import tag_count_reward
from reward_kit.rewards.text_match import contains_reward, exact_match_reward, regex_reward, token_f1_reward
from tests.growth import growth_of_time
from tests.rewards.answers import answered

REWARDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "length": (length_reward, {}),
    "cosine_length": (cosine_length_reward, {"is_correct": True}),
    "accuracy_length": (cosine_scaled_accuracy_length_reward, {"ground_truth": "7"}),
    "accuracy": (accuracy_reward, {"ground_truth": "7"}),
    "math": (math_reward, {"ground_truth": "7"}),
    "repetition": (repetition_penalty_reward, {}),
    "format": (format_reward, {}),
    "reasoning_steps": (reasoning_steps_reward, {}),
    "tag_count": (tag_count_reward, {"required_tags": ["a"]}),
    "json_schema": (json_schema_reward, {"expected_schema": {"type": "object"}}),
    "multiple_choice": (multiple_choice_reward, {"ground_truth": "B"}),
    "multiple_choice_math": (multiple_choice_math_reward, {"ground_truth": "(B)"}),
    "list_comparison": (list_comparison_math_reward, {"ground_truth": "1, 2"}),
    "bleu": (bleu_reward, {"ground_truth": "a quick brown fox"}),
    "rouge": (rouge_reward, {"ground_truth": "a quick brown fox"}),
    "contains": (contains_reward, {"ground_truth": "a quick brown fox"}),
    "exact_match": (exact_match_reward, {"ground_truth": "a quick brown fox"}),
    "regex": (regex_reward, {"ground_truth": "quick.fox"}),
    "token_f1": (token_f1_reward, {"ground_truth": "a quick brown fox"}),
    "ifeval": (
        ifeval_reward,
        {
            "instruction_id_list": ["length_constraints:number_words", "punctuation:no_comma", "startend:quotation"],
            "kwargs": [{"num_words": 3, "relation": "at least"}, {}, {}],
            "partial": True,
        },
    ),
}
TEXTS = {
    "prose": "The quick brown fox jumps over the lazy dog: 12 apples, `x = 5` or 7. ",
    "spaces": " ",
    "one word": "a",
    "opened tags": "<think>",
    "ticks": "``",
    "fences": "```\n",
    "boxes": "\\boxed{",
    "braces": "{",
    "dollars": "$ ",
    "phrases": "the answer is ",
    "choices": "(A) ",
    "digits": "1,",
    "backslashes": "\\",
    "accents": "e\u0301",
    "lines": "\n",
}
_CHARACTERS = 8_000
_SHORTEST_MEASURED = 0.002
"""Seconds. What takes less at eight times the text does not grow with it."""


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", REWARDS)
def test_eight_times_the_text_is_no_more_than_eight_times_the_work(name: str, text: str) -> None:
    """With room for noise, and for memory that no longer fits a cache; a quadratic pass would take 64 times."""
    reward, settings = REWARDS[name]

    def judged(size: int) -> None:
        result = reward(messages=answered(TEXTS[text] * (size // len(TEXTS[text]))), **settings)
        assert isinstance(result, EvaluateResult)

    assert growth_of_time(judged, _CHARACTERS, times=8, at_least=_SHORTEST_MEASURED) < 30
