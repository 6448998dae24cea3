# SPDX-License-Identifier: Apache-2.0
"""Rewards of steps meet their `StepData`, at the path where users of the public package import it from."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from reward_kit.agent.alignment import align, twice
from reward_kit.agent.models import StepData
from reward_kit.models import EvaluateResult

__all__ = ["RLDataAligner"]

log = logging.getLogger(__name__)


class RLDataAligner:
    """Puts the rewards that a reward function gave to steps into the steps."""

    def align_data_for_rl_processing(
        self, current_eval_result: EvaluateResult, current_step_data_list: list[StepData], rollout_id: str
    ) -> list[StepData]:
        """Fill `base_reward` of each step for which the result has a `StepOutput`, and return the same steps.

        `StepOutput.step_index` is the step's `step_info["assistant_turn_index"]`: 0 for the assistant's first turn. The
        text "0" means the same as 0. What does not fit is logged as a warning, with the rollout's id: an index that no
        step has, one that comes twice (the first one counts), and steps without a reward or without an index.
        """
        if current_eval_result.step_outputs is None:
            return current_step_data_list
        steps = _by_turn(current_step_data_list, rollout_id)
        aligned = align(current_eval_result.step_outputs, list(steps))
        for step, reward in zip(steps.values(), aligned.rewards, strict=True):
            if reward is not None:
                step.base_reward = reward
        for complaint in aligned.complaints():
            log.warning("Rollout %r: %s", rollout_id, complaint)
        return current_step_data_list


def _by_turn(steps: Sequence[StepData], rollout_id: str) -> dict[str, StepData]:
    """The steps by the assistant turn that each says it is."""
    found: dict[str, StepData] = {}
    unnamed, turns = [], []
    for step in steps:
        turn = step.step_info.get("assistant_turn_index")
        if turn is None:
            unnamed.append(str(step.system_step_index))
            continue
        turns.append(str(turn))
        found.setdefault(str(turn), step)
    if unnamed:
        what = "There are steps without step_info['assistant_turn_index'], by system_step_index"
        log.warning("Rollout %r: %s: %s.", rollout_id, what, ", ".join(unnamed))
    if double := twice(turns):
        what = "There are several steps for one assistant turn, of which the first counts"
        log.warning("Rollout %r: %s: %s.", rollout_id, what, ", ".join(double))
    return found
