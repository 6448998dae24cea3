# SPDX-License-Identifier: Apache-2.0
"""The inherited aligner: rewards go into `StepData`, and everything that does not fit is logged."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from reward_kit.agent.models import StepData
from reward_kit.models import EvaluateResult, StepOutput
from reward_kit.rl_processing import RLDataAligner


def step(turn: int | None, index: int = 0, **fields: Any) -> StepData:
    info = {} if turn is None else {"assistant_turn_index": turn}
    return StepData(
        system_step_index=index,
        observation_data="seen",
        action_taken={"type": "text", "content": "done"},
        resulting_messages_history=[],
        step_info=info,
        **fields,
    )


def result(*pairs: tuple[int | str, float]) -> EvaluateResult:
    return EvaluateResult(score=1.0, step_outputs=[StepOutput(step_index=i, base_reward=r) for i, r in pairs])


def aligned(found: EvaluateResult, steps: list[StepData]) -> list[float | None]:
    same = RLDataAligner().align_data_for_rl_processing(found, steps, "episode-7")
    assert same is steps
    return [each.base_reward for each in same]


def test_rewards_find_their_steps_by_the_assistant_turn(caplog: pytest.LogCaptureFixture) -> None:
    assert aligned(result((1, 0.5), ("0", 0.25)), [step(0), step(1)]) == [0.25, 0.5]
    assert not caplog.records


def test_without_rewards_of_steps_nothing_changes(caplog: pytest.LogCaptureFixture) -> None:
    assert aligned(EvaluateResult(score=1.0), [step(0, base_reward=3.0)]) == [3.0]
    assert not caplog.records


def test_what_does_not_fit_is_logged_with_the_rollout(caplog: pytest.LogCaptureFixture) -> None:
    steps = [step(0), step(0, index=1), step(None, index=2), step(3)]
    with caplog.at_level(logging.WARNING):
        assert aligned(result((0, 1.0), (0, 2.0), (9, 3.0)), steps) == [1.0, None, None, None]
    assert [record.message for record in caplog.records] == [
        "Rollout 'episode-7': There are steps without step_info['assistant_turn_index'], by system_step_index: 2.",
        "Rollout 'episode-7': There are several steps for one assistant turn, of which the first counts: 0.",
        "Rollout 'episode-7': There are rewards for steps that do not exist: 9.",
        "Rollout 'episode-7': There are several rewards for one step, of which the first counts: 0.",
        "Rollout 'episode-7': There are no rewards for some steps: 3.",
    ]


def test_step_data_keeps_what_it_does_not_know() -> None:
    assert step(0, colour="red").model_dump()["colour"] == "red"
