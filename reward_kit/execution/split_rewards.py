# SPDX-License-Identifier: Apache-2.0
"""What stands where only the splits that are named have a reward. Its path is in the config.yaml of experiments."""

from __future__ import annotations

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import reward_function

__all__ = ["unverified"]


@reward_function
async def unverified(messages: list[Message], *, split: str | None = None, **kwargs: Any) -> EvaluateResult:
    """No verdict, ever: it stands where only the splits that are named have a reward."""
    reason = f"The split {split!r} has no verifier. Name one in `verifiers`."
    return EvaluateResult(score=0.0, is_score_valid=False, reason=reason)
