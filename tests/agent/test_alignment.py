# SPDX-License-Identifier: Apache-2.0
"""Rewards of steps find their steps, and what does not fit is named."""

from __future__ import annotations

from reward_kit.agent.alignment import align
from reward_kit.models import StepOutput


def outputs(*pairs: tuple[int | str, float]) -> list[StepOutput]:
    return [StepOutput(step_index=index, base_reward=reward) for index, reward in pairs]


def test_rewards_come_in_the_order_of_the_turns() -> None:
    aligned = align(outputs((2, 0.2), ("0", 0.0), (1, 0.1)), range(3))
    assert aligned.rewards == [0.0, 0.1, 0.2]
    assert aligned.complaints() == []


def test_missing_double_and_foreign_indices_are_named() -> None:
    aligned = align(outputs((0, 1.0), ("0", 9.0), (7, 2.0), ("last", 3.0)), range(3))
    assert aligned.rewards == [1.0, None, None]
    assert aligned.complaints() == [
        "There are rewards for steps that do not exist: 7, last.",
        "There are several rewards for one step, of which the first counts: 0.",
        "There are no rewards for some steps: 1, 2.",
    ]
