# SPDX-License-Identifier: Apache-2.0
"""Whether a reward's `step_outputs` fit the steps of the episode they are about: by the Nth turn of the assistant."""

from __future__ import annotations

import logging

from reward_kit.agent.alignment import align
from reward_kit.errors import RewardError
from reward_kit.models import EvaluateResult, Failure, Rollout, Verdict

__all__ = ["StepRewards"]

_log = logging.getLogger(__name__)


class StepRewards:
    """Looks at the rewards of steps as they come."""

    def __init__(self) -> None:
        self._said = False

    def checked(self, rollout: Rollout, verdict: Verdict) -> Verdict:
        """The verdict; a failure where it rewards a step that is not there, or one step twice.

        Such a reward counts steps in another way than the episode does, and would train something else than it means.
        Steps without a reward are said once: a reward may well have nothing to say of them.
        """
        if rollout.steps is None or not isinstance(verdict, EvaluateResult) or verdict.step_outputs is None:
            return verdict
        found = align(verdict.step_outputs, range(len(rollout.steps)))
        if found.foreign or found.double:
            wrong = RewardError(
                f"The reward's step_outputs do not fit the {len(rollout.steps)} steps of the episode. "
                f"{' '.join(found.complaints())} Count the assistant's turns, from 0."
            )
            return Failure.of(wrong, "score")
        if found.missing and not self._said:
            self._said = True
            _log.warning(
                "Answer %d of sample %r has steps to which the reward gave no value: %s. This warning is shown only "
                "once.",
                rollout.response_index, rollout.sample.id, ", ".join(found.missing),
            )  # fmt: skip
        return verdict
