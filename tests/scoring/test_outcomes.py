# SPDX-License-Identifier: Apache-2.0
"""Whatever comes out of a worker, or becomes of it, is one verdict per answer."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reward_kit.errors import RewardKitError
from reward_kit.models import EvaluateResult, Failure, MetricResult, Rollout, StepOutput
from reward_kit.reward_call import RewardCall
from reward_kit.scoring.outcomes import verdicts_of
from reward_kit.scoring.worker_call import WorkerCall
from reward_kit.workers import Died, Done, Outcome, Raised, TimedOut

RICH = EvaluateResult(
    score=0.5, reason="half", metrics={"a": MetricResult(score=1.0, reason="yes")},
    step_outputs=[StepOutput(step_index=0, base_reward=1.0)],
)  # fmt: skip
ANSWER = Rollout.of_conversation([{"role": "assistant", "content": "4"}], "4")


def through_a_worker(reward: Any, answers: int = 1) -> Any:
    """As between processes: pickled on the way in and on the way out."""
    arguments = RewardCall(reward).arguments_of([ANSWER] * answers, plain=True)
    plain = WorkerCall(reward)(pickle.loads(pickle.dumps(arguments)))
    return verdicts_of(Done(pickle.loads(pickle.dumps(plain))), "r", answers)


@pytest.mark.parametrize("result", [EvaluateResult(score=1.0), EvaluateResult(score=-2.0, reason="no"), RICH])
def test_a_result_comes_through_as_it_was(result: EvaluateResult) -> None:
    def reward(messages: list[Any], **kwargs: Any) -> EvaluateResult:
        return result

    assert through_a_worker(reward) == [result]


def test_a_result_that_was_spoilt_after_it_was_made_is_noticed() -> None:
    def reward(messages: list[Any], **kwargs: Any) -> EvaluateResult:
        result = EvaluateResult(score=1.0)
        result.reason = ["not", "text"]  # type: ignore[assignment]
        return result

    (verdict,) = through_a_worker(reward)
    assert isinstance(verdict, Failure) and "not a result" in verdict.message


def test_no_verdict_is_a_failure_of_its_answer_only() -> None:
    def reward(rollouts_messages: list[Any], **kwargs: Any) -> list[EvaluateResult]:
        return [EvaluateResult(score=0.0, error="no idea"), EvaluateResult(score=1.0)]

    first, second = through_a_worker(reward, 2)
    assert isinstance(first, Failure) and "no idea" in first.message
    assert second == EvaluateResult(score=1.0)


def test_an_error_of_the_reward_fails_every_answer_of_its_call() -> None:
    def reward(rollouts_messages: list[Any], **kwargs: Any) -> list[EvaluateResult]:
        raise ValueError("broken")

    judged = through_a_worker(reward, 3)
    assert [verdict.type for verdict in judged] == ["RewardError"] * 3
    assert all("ValueError" in verdict.message for verdict in judged)


def test_what_is_no_failure_of_an_item_ends_the_run() -> None:
    def reward(messages: list[Any], **kwargs: Any) -> float:
        raise RewardKitError("a key is missing")

    with pytest.raises(RewardKitError, match="a key is missing"):
        through_a_worker(reward)


@pytest.mark.parametrize(
    ("outcome", "kind", "said"),
    [
        (Raised("ValueError", "bad", ""), "RewardError", "raised ValueError: bad"),
        (TimedOut(2.0), "RewardTimeoutError", "within 2 s. Raise `timeout`"),
        (Died("exited with code 3"), "RewardError", "it exited with code 3"),
        (Done([{"score": "much"}]), "RewardError", "not a result"),
        (Done(7), "RewardError", "not a result"),
    ],
)
def test_each_outcome_of_a_worker_is_a_failure_of_each_answer(outcome: Outcome, kind: str, said: str) -> None:
    judged = verdicts_of(outcome, "r", 2, "timeout")
    assert len(judged) == 2
    for verdict in judged:
        assert isinstance(verdict, Failure) and verdict.type == kind and said in verdict.message
