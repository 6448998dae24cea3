# SPDX-License-Identifier: Apache-2.0
"""The inherited name of GiGPO: it fills advantages and returns by the paper's formula."""

from __future__ import annotations

import math
from typing import Any

import pytest

from reward_kit.agent.models import StepData
from reward_kit.rl_helpers import system_apply_gigpo_to_batch_steps


def episode(*steps: tuple[str, float | None]) -> list[StepData]:
    return [
        StepData(
            system_step_index=place,
            observation_data={"board": seen},
            action_taken={"type": "text", "content": ""},
            resulting_messages_history=[],
            base_reward=reward,
        )
        for place, (seen, reward) in enumerate(steps)
    ]


def board(observation: Any) -> Any:
    return observation["board"]


def test_the_advantage_is_the_episodes_plus_omega_times_the_steps() -> None:
    batch = [episode(("A", 0.0), ("B", 1.0)), episode(("A", 0.0), ("C", 0.0))]
    found = system_apply_gigpo_to_batch_steps(batch, [1.0, 0.0], 0.5, 1.0, board, mode="mean_norm")
    assert found is batch
    assert [[step.advantage for step in steps] for steps in found] == [[0.75, 0.5], [-0.75, -0.5]]
    assert [[step.return_to_go for step in steps] for steps in found] == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(("omega", "first"), [(0.0, 0.5), (1.0, 1.0)])
def test_omega_adds_the_step_and_takes_nothing_from_the_episode(omega: float, first: float) -> None:
    batch = [episode(("A", 1.0)), episode(("A", 0.0))]
    found = system_apply_gigpo_to_batch_steps(batch, [1.0, 0.0], omega, 1.0, board, mode="mean_norm")
    assert found[0][0].advantage == first


def test_scores_are_divided_by_their_spread_unless_told_otherwise() -> None:
    found = system_apply_gigpo_to_batch_steps([episode(("A", 1.0)), episode(("B", 0.0))], [1.0, 0.0], 1.0, 1.0, board)
    assert found[0][0].advantage == pytest.approx(0.5 / (math.sqrt(0.5) + 1e-6))


def test_steps_without_a_reward_have_the_default_and_the_end_has_the_score() -> None:
    batch = [episode(("A", None), ("B", None))]
    found = system_apply_gigpo_to_batch_steps(batch, [1.0], 1.0, 0.5, board, -0.1)
    assert [step.return_to_go for step in found[0]] == pytest.approx([-0.1 + 0.5 * 0.9, 0.9])


@pytest.mark.parametrize("failed", [None, math.nan])
def test_a_failed_rollout_gets_no_advantage_and_the_others_do_not_notice(failed: float | None) -> None:
    batch = [episode(("A", None)), episode(("A", None)), episode(("A", None))]
    found = system_apply_gigpo_to_batch_steps(batch, [1.0, failed, 0.0], 1.0, 1.0, board, mode="mean_norm")
    assert [steps[0].advantage for steps in found] == [1.0, None, -1.0]
    assert found[1][0].return_to_go is None


def test_groups_are_compared_apart() -> None:
    batch = [episode(("A", None)) for _ in range(4)]
    found = system_apply_gigpo_to_batch_steps(
        batch, [1.0, 0.0, 1.0, 1.0], 0.0, 1.0, board, groups=["p", "p", "q", "q"], mode="mean_norm"
    )
    assert [steps[0].advantage for steps in found] == [0.5, -0.5, 0.0, 0.0]


def test_a_score_is_needed_for_each_rollout() -> None:
    with pytest.raises(ValueError, match="1 final scores were given for 2 rollouts"):
        system_apply_gigpo_to_batch_steps([[], []], [1.0], 1.0, 1.0, board)
