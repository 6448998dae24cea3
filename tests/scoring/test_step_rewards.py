# SPDX-License-Identifier: Apache-2.0
"""Rewards of steps: those that fit are kept, those that do not are told."""

from __future__ import annotations

import logging

import pytest

from reward_kit.models import EvaluateResult, Failure, Message, Rollout, Sample, Step, StepOutput
from reward_kit.scoring.step_rewards import StepRewards

ROLLOUT = Rollout(
    sample=Sample(id="s", messages=[]),
    response_index=0,
    turns=[Message(role="assistant", content=str(i)) for i in range(3)],
    steps=[Step(turn=i) for i in range(3)],
)


def rewarding(*indices: int | str) -> EvaluateResult:
    outputs = [StepOutput(step_index=index, base_reward=1.0) for index in indices]
    return EvaluateResult(score=1.0, step_outputs=outputs)


@pytest.mark.parametrize("indices", [(0, 1, 2), ("2", 1, "0"), ()])
def test_rewards_that_name_steps_of_the_episode_are_kept(indices: tuple[int | str, ...]) -> None:
    result = rewarding(*indices)
    assert StepRewards().checked(ROLLOUT, result) is result


@pytest.mark.parametrize(("indices", "told"), [((0, 3), "3"), ((-1, 0), "-1"), ((1, 1), "1"), (("one",), "one")])
def test_a_foreign_or_double_index_is_a_failure_that_names_it(indices: tuple[int | str, ...], told: str) -> None:
    verdict = StepRewards().checked(ROLLOUT, rewarding(*indices))
    assert isinstance(verdict, Failure)
    assert verdict.stage == "score" and f": {told}." in verdict.message


def test_a_missing_index_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    rewards = StepRewards()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert isinstance(rewards.checked(ROLLOUT, rewarding(0)), EvaluateResult)
    assert [record.message for record in caplog.records] == [
        "Answer 0 of sample 's' has steps to which the reward gave no value: 1, 2. This warning is shown only once."
    ]


def test_an_answer_that_is_no_episode_is_left_alone() -> None:
    single = ROLLOUT.model_copy(update={"steps": None})
    result = rewarding(7)
    assert StepRewards().checked(single, result) is result
