# SPDX-License-Identifier: Apache-2.0
"""What a walk over a frozen lake is worth: as a whole, and step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_kit import EvaluateResult, MetricResult, StepOutput, reward_function
from reward_kit.models import Message, Step

STEP = -0.05
WASTED = -0.1
GOAL = 1.0


@reward_function
def crossed(
    messages: list[Message], steps: Sequence[Step], facts: dict[str, Any], shortest: int, **kwargs: Any
) -> EvaluateResult:
    """1.0 for a walk that came to the goal.

    Each step costs a little, and one after which the walker stands where it stood costs twice as much. The step onto
    the goal brings 1. A step knows only the state before it. So nobody knows whether the last step of a walk that was
    cut off led anywhere, and it costs a little.
    """
    outputs = []
    for place, step in enumerate(steps):
        stood = place + 1 < len(steps) and steps[place + 1].state == step.state
        outputs.append(
            StepOutput(
                step_index=place,
                base_reward=(WASTED if stood else STEP) + GOAL * (step.reward or 0.0),
                reason="The walker stands where it stood." if stood else "A step.",
            )
        )
    reached = bool(facts["reached"])
    straight = shortest / len(steps) if reached else 0.0
    told = f"{len(steps)} steps; the shortest way has {shortest}."
    return EvaluateResult(
        score=float(reached),
        reason=f"The walk {'reached' if reached else 'did not reach'} the goal: {told}",
        metrics={"straight": MetricResult(score=straight, reason=told, is_score_valid=reached)},
        step_outputs=outputs,
    )
