# SPDX-License-Identifier: Apache-2.0
"""SimpleQA's three grades, by a judge."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.simpleqa import simpleqa_reward

TALK = [Message(role="user", content="Capital of Peru?"), Message(role="assistant", content="Lima, I think.")]


def judge(*responses: str, **mock: Any) -> dict[str, Any]:
    return {"model_name": "mock", "mock": {"responses": list(responses), **mock}, "cache": {"enabled": False}}


async def graded(*responses: str, messages: list[Message] = TALK, **settings: Any) -> EvaluateResult:
    result: EvaluateResult = await simpleqa_reward(
        messages, judge=judge(*responses), **{"ground_truth": "Lima", **settings}
    )
    return result


@pytest.mark.parametrize(
    ("grade", "score", "metrics"),
    [
        ("CORRECT", 1.0, {"correct": 1.0, "incorrect": 0.0, "not_attempted": 0.0, "correct_given_attempted": 1.0}),
        ("INCORRECT", 0.0, {"correct": 0.0, "incorrect": 1.0, "not_attempted": 0.0, "correct_given_attempted": 0.0}),
        ("NOT_ATTEMPTED", 0.0, {"correct": 0.0, "incorrect": 0.0, "not_attempted": 1.0}),
        ("not_attempted", 0.0, {"correct": 0.0, "incorrect": 0.0, "not_attempted": 1.0}),
    ],
)
async def test_a_grade_becomes_a_score_and_metrics(grade: str, score: float, metrics: dict[str, float]) -> None:
    result = await graded(f"Some reasons.\nVERDICT: {grade}")
    assert result.score == score
    assert {name: metric.score for name, metric in result.metrics.items()} == metrics


async def test_a_reply_in_another_form_is_asked_for_again_and_then_is_no_verdict() -> None:
    assert (await graded("Fine!", "VERDICT: CORRECT")).score == 1.0
    with pytest.raises(RewardError, match="no readable verdict"):
        await graded("It is CORRECT.", "VERDICT: PARTLY", "CORRECT or INCORRECT")


async def test_the_grade_of_most_votes_counts() -> None:
    votes = ["VERDICT: CORRECT", "VERDICT: INCORRECT", "VERDICT: INCORRECT"]
    assert (await graded(*votes, votes=3)).metrics["incorrect"].score == 1.0


@pytest.mark.parametrize(
    "votes", [("CORRECT", "INCORRECT"), ("CORRECT", "NOT_ATTEMPTED"), ("NOT_ATTEMPTED", "INCORRECT"), ("CORRECT",) * 2]
)
@pytest.mark.parametrize("backwards", [False, True])
async def test_a_tie_never_counts_for_the_model(votes: tuple[str, str], backwards: bool) -> None:
    replies = [f"VERDICT: {label}" for label in (votes[::-1] if backwards else votes)]
    result = await graded(*replies, votes=2)
    assert result.score == float(set(votes) == {"CORRECT"})
    assert result.metrics["incorrect"].score == float("INCORRECT" in votes)


async def test_the_judge_sees_question_reference_and_answer_but_no_thoughts(tmp_path: Any, monkeypatch: Any) -> None:
    asked: list[str] = []

    class Listener:
        async def ask(self, prompt: Any, draws: Any = (0,)) -> list[str]:
            asked.append(str(prompt))
            return ["VERDICT: CORRECT" for _ in draws]

    said = [TALK[0], Message(role="assistant", content="<think>Cusco?</think>Lima, I think.")]
    await simpleqa_reward(said, judge=Listener(), ground_truth="the city of Lima")
    assert all(text in asked[0] for text in ("Capital of Peru?", "the city of Lima", "Lima, I think."))
    assert "Cusco" not in asked[0]


async def test_an_empty_answer_is_not_attempted_and_nobody_is_asked() -> None:
    empty = [TALK[0], Message(role="assistant", content="<think>Lima</think>")]
    result = await simpleqa_reward(empty, judge=judge(fail_every=1), ground_truth="Lima")
    assert result.metrics["not_attempted"].score == 1.0


async def test_without_a_reference_there_is_no_verdict() -> None:
    result = await graded("VERDICT: CORRECT", ground_truth=None)
    assert not result.is_score_valid and "Give the right answer as text" in (result.reason or "")
