# SPDX-License-Identifier: Apache-2.0
"""reasoning_steps_reward and sequence_reward: steps that say something, terms in their order."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.models import EvaluateResult
from reward_kit.rewards.reasoning_steps import reasoning_steps_reward, sequence_reward
from reward_kit.typed_interface import RewardContractError
from tests.rewards.answers import answered


def steps(text: str, **settings: Any) -> EvaluateResult:
    return reasoning_steps_reward(messages=answered(text), **settings)


def sequence(text: str, **settings: Any) -> float:
    return sequence_reward(messages=answered(text), **settings).score


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Step 1: Add them up.\nStep 2: Halve the sum.\nStep 3: Round it down.", "explicit_steps"),
        ("Step 1. Add them up. Step 2. Halve the sum. Step 3. Round it down.", "explicit_steps"),
        ("**Step 1:** Add them up.\n### Step 2: Halve it now.\n**Step 3**: Round it down.", "explicit_steps"),
        ("1. Add them up.\n2. Halve the sum.\n3. Round it down.", "numbered_lists"),
        ("1) Add them up.\n\n  2) Halve the sum.\n\n  3) Round it down.", "numbered_lists"),
        ("Look:\n- Add them up.\n- Halve the sum.\n- Round it down.", "bullet_points"),
        ("* Add them up.\n* Halve the sum.\n• Round it down.", "bullet_points"),
        ("First, we add them up. Next, we halve the sum. Finally, we round it.", "transition_phrases"),
    ],
)
def test_steps_are_found_however_they_are_marked(text: str, kind: str) -> None:
    result = steps(text)
    assert result.score == 1.0
    assert set(result.metrics) == {"reasoning_steps", kind}
    assert result.metrics[kind].score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The answer is 4.",
        "1.\n2.\n3.",
        "1. \n2. \n3. ",
        "First, second, third, next, then, finally,",
        "Step 1: Step 2: Step 3:",
        "```\n1. Add them up.\n2. Halve the sum.\n3. Round it down.\n```",
        "It costs 3.50 and 4.50 and 5.50 at least.",
        "It is - as we know - so - and so.",
        "The heathen, they say, footstep 1: may misstep 2: at last unthen, and so on.",
    ],
)
def test_marks_without_steps_earn_nothing(text: str) -> None:
    assert steps(text).score == 0.0


def test_a_step_counts_once_however_often_it_is_written() -> None:
    assert steps("1. Add them up.\n2. add THEM up!\n3. Add  them up").score == pytest.approx(1 / 3)


def test_fewer_steps_earn_less_and_more_do_not_earn_more() -> None:
    assert steps("- Add them up.\n- Halve the sum.").score == pytest.approx(2 / 3)
    assert steps("\n".join(f"- Add number {i} up." for i in range(50))).score == 1.0


def test_with_a_maximum_the_score_grows_up_to_it() -> None:
    scores = [
        steps("\n".join(f"- Add number {i} up." for i in range(n)), min_steps=3, max_steps=5).score for n in range(8)
    ]
    assert scores == pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 1, 1, 1])


def test_a_mark_of_ones_own_may_be_added_or_be_the_only_one() -> None:
    text = "1. Add them up.\n>> halve\n>> round"
    assert steps(text, pattern="^>>").score == 1.0
    assert steps(text, pattern="^>>", exclusive_patterns=True).score == pytest.approx(2 / 3)


@pytest.mark.parametrize("settings", [{"min_steps": 0}, {"max_steps": 2}, {"pattern": "("}, {"min_steps": None}])
def test_a_wrong_parameter_of_steps_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=f"'{next(iter(settings))}'"):
        steps("a", **settings)


# ── sequences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_terms_count_in_their_order() -> None:
    assert sequence("First a, then b, finally c.") == 1.0
    assert sequence("Finally a, then b, first c.") == pytest.approx(1 / 3)
    assert sequence("FIRST a, THEN b") == pytest.approx(2 / 3)
    assert sequence("FIRST a, THEN b", case_sensitive=True) == 0.0


def test_terms_are_whole_words_outside_code() -> None:
    assert sequence("Firstborn authentic nextdoor") == 0.0
    assert sequence("`first then finally`") == 0.0


def test_where_few_terms_are_given_all_are_wanted() -> None:
    assert sequence("alpha beta", sequence_terms=["alpha", "beta"]) == 1.0
    assert sequence("beta alpha", sequence_terms=["alpha", "beta"]) == 0.5


def longest(words: list[str], terms: str) -> int:
    """By trying every choice of terms."""

    def fits(chosen: tuple[str, ...]) -> bool:
        rest = iter(words)
        return all(term in rest for term in chosen)

    return max(size for size in range(len(terms) + 1) for chosen in combinations(terms, size) if fits(chosen))


@given(st.lists(st.sampled_from("abcdx"), max_size=12))
def test_the_longest_chain_counts(words: list[str]) -> None:
    found = sequence(" ".join(words), sequence_terms=list("abcd"), min_matches=4)
    assert found == longest(words, "abcd") / 4


@pytest.mark.parametrize(
    "settings", [{"sequence_terms": []}, {"sequence_terms": "ab"}, {"sequence_terms": [""]}, {"min_matches": 0}]
)
def test_a_wrong_parameter_of_sequences_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(RewardContractError, match=f"'{next(iter(settings))}'"):
        sequence("a", **settings)
