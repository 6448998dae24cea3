# SPDX-License-Identifier: Apache-2.0
"""GiGPO for lists of `StepData`, under the name that the public package's plan gives it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from reward_kit.agent.credit import Mode, Trajectory, filled_rewards, gigpo
from reward_kit.agent.models import StepData

__all__ = ["system_apply_gigpo_to_batch_steps"]


def system_apply_gigpo_to_batch_steps(
    batch_of_step_data_lists: list[list[StepData]],
    final_scores_for_rollouts: Sequence[float | None],
    omega: float,
    gamma: float,
    state_hashing_function: Callable[[Any], Any],
    default_step_reward: float = 0.0,
    *,
    groups: Sequence[Hashable] | None = None,
    mode: Mode = "mean_std_norm",
) -> list[list[StepData]]:
    """Fill `advantage` and `return_to_go` of every step, and return the same lists.

    The advantage is A_E + omega · A_S, equation 8 of the GiGPO paper, and not omega · A_E + (1 - omega) · A_S, which
    the package's plan had: with omega = 0 only the episode counts, with omega = 1 both count fully.

    A_E comes from the final scores of a group, A_S from the returns of steps whose `observation_data` has the same
    value under `state_hashing_function`. All rollouts are one group unless `groups` names one for each. A step without
    `base_reward` has `default_step_reward`, and a last step without one the final score besides. A rollout whose score
    is `None` or NaN failed: it is left out, and its steps get no advantage.
    """
    if len(final_scores_for_rollouts) != len(batch_of_step_data_lists):
        raise ValueError(
            f"{len(final_scores_for_rollouts)} final scores were given for {len(batch_of_step_data_lists)} rollouts; "
            "expected one for each, None where a rollout failed"
        )
    named = groups if groups is not None else [None] * len(batch_of_step_data_lists)
    episodes = [
        Trajectory(
            group=group,
            states=[state_hashing_function(step.observation_data) for step in steps],
            rewards=filled_rewards([step.base_reward for step in steps], score or 0.0, default_step_reward),
            score=score,
        )
        for steps, score, group in zip(batch_of_step_data_lists, final_scores_for_rollouts, named, strict=True)
    ]
    credits = gigpo(episodes, gamma=gamma, omega=omega, mode=mode)
    for steps, credit in zip(batch_of_step_data_lists, credits, strict=True):
        for place, step in enumerate(steps):
            step.advantage = None if credit is None else credit.advantages[place]
            step.return_to_go = None if credit is None else credit.returns[place]
    return batch_of_step_data_lists
