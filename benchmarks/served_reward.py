# SPDX-License-Identifier: Apache-2.0
"""The rewards that `benchmarks.serving` serves; apart, so that a server loads nothing else for them."""

from __future__ import annotations

from typing import Any

from reward_kit.models import EvaluateResult, Message
from reward_kit.typed_interface import reward_function

__all__ = ["trivial", "trivial_sync"]


@reward_function
async def trivial(messages: list[Message], ground_truth: str = "", **kwargs: Any) -> EvaluateResult:
    """Judges by the last characters."""
    return EvaluateResult(score=float(messages[-1].text[-3:-1] == ground_truth), reason="compared")


@reward_function
def trivial_sync(messages: list[Message], ground_truth: str = "", **kwargs: Any) -> EvaluateResult:
    """The same, for worker processes."""
    return EvaluateResult(score=float(messages[-1].text[-3:-1] == ground_truth), reason="compared")
