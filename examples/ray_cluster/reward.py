# SPDX-License-Identifier: Apache-2.0
"""A reward of one's own: the actors load it from the copy of this directory that they get."""

from __future__ import annotations

from typing import Any

from reward_kit import EvaluateResult, Message, reward_function


@reward_function
def mentions_the_answer(messages: list[Message], ground_truth: str | None = None, **kwargs: Any) -> EvaluateResult:
    """1 where the reply holds the right answer."""
    found = ground_truth is not None and ground_truth in messages[-1].text
    return EvaluateResult(score=float(found), reason="found" if found else "not found")
