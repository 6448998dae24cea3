# SPDX-License-Identifier: Apache-2.0
"""Whether the desk has what was asked for: read from the world's facts, and not from what the model says of itself."""

from __future__ import annotations

from typing import Any

from reward_kit import EvaluateResult, Message, reward_function


@reward_function
def delivered(messages: list[Message], ground_truth: dict[str, int], facts: dict[str, Any], **_: Any) -> EvaluateResult:
    """1 where the desk holds exactly what was asked for."""
    desk = facts["warehouse"]["desk"]
    right = desk == ground_truth
    return EvaluateResult(score=float(right), reason=f"the desk holds {desk}, and {ground_truth} was asked for")
