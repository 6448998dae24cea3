# SPDX-License-Identifier: Apache-2.0
"""OpenEvals evaluators as rewards, with stand-ins of the shapes OpenEvals documents."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.integrations.openeval import adapt
from reward_kit.models import Rollout
from reward_kit.reward_call import RewardCall
from reward_kit.typed_interface import Operator, is_async

TURNS: Any = [{"role": "user", "content": "capital?"}, {"role": "assistant", "content": "Paris"}]


def exact_match(*, outputs: Any, reference_outputs: Any, **kwargs: Any) -> dict[str, Any]:
    return {"key": "exact_match", "score": outputs == reference_outputs, "comment": None}


def judge(*, inputs: Any, outputs: Any, context: str = "") -> dict[str, Any]:
    return {"key": "helpful", "score": 0.5, "comment": f"{inputs} {context}"}


async def exact_match_async(*, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
    return exact_match(outputs=outputs, reference_outputs=reference_outputs)


def test_an_evaluator_is_a_reward() -> None:
    reward = adapt(exact_match)
    assert reward(messages=TURNS, ground_truth="Paris").score == 1.0
    result = reward(messages=TURNS, ground_truth=[{"role": "assistant", "content": "Rome"}], level="easy")
    assert (result.score, result.metrics["exact_match"].score, reward.__name__) == (0.0, 0.0, "exact_match")


def test_it_gets_the_question_and_the_columns_it_names() -> None:
    assert adapt(judge)(messages=TURNS, context="geo", level="easy").reason == "capital? geo"


async def test_an_async_evaluator_is_an_async_reward() -> None:
    reward = adapt(exact_match_async)
    assert is_async(reward)
    assert (await reward(messages=TURNS, ground_truth="Paris")).score == 1.0


def test_several_scores_are_averaged_and_none_is_no_verdict() -> None:
    answers: list[dict[str, Any]] = [
        {"key": "a", "score": 1},
        {"key": "b", "score": False},
        {"key": "c", "score": None},
    ]
    assert adapt(lambda outputs: answers)(messages=TURNS).score == 0.5
    assert not adapt(lambda outputs: answers[2:])(messages=TURNS).is_score_valid


def test_an_answer_of_another_shape_is_an_error() -> None:
    with pytest.raises(TypeError, match="'yes'"):
        adapt(lambda outputs: "yes")(messages=TURNS)


def test_what_an_evaluator_leaves_to_its_operator_no_column_fills() -> None:
    def judged(*, outputs: Any, model: Operator[str] = "mine", level: str = "") -> dict[str, Any]:
        return {"key": model, "score": 1.0, "comment": level}

    rollout = Rollout.of_conversation(TURNS, "Paris", {"level": "easy", "model": "theirs"})
    call = RewardCall(adapt(judged))
    result = call.judge(call.arguments_of([rollout]))
    assert ([*result.metrics], result.reason) == (["mine"], "easy")
    chosen = RewardCall(adapt(judged), {"model": "another"})
    assert [*chosen.judge(chosen.arguments_of([rollout])).metrics] == ["another"]
