# SPDX-License-Identifier: Apache-2.0
"""The right texts that a ground truth holds, for rewards that compare an answer with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from reward_kit.models import Message

__all__ = ["as_text", "reference_texts"]


def as_text(value: Any) -> str | None:
    """A text or a number as text; None for anything else, an empty text too."""
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    return text or None


def reference_texts(ground_truth: Any) -> list[str]:
    """Each text that is right: one, a list of them, or the last turn of a conversation. Else a ValueError."""
    entries = ground_truth if isinstance(ground_truth, list | tuple) else [ground_truth]
    if entries and all(isinstance(entry, Message) or _is_turn(entry) for entry in entries):
        last = Message.model_validate(entries[-1])
        entries = [last.text] if last.role == "assistant" else []
    texts = [as_text(entry) for entry in entries]
    if not texts or None in texts:
        raise ValueError(f"The ground truth is {_shown(ground_truth)}. Give the right text, or a list of right texts.")
    return [text for text in texts if text is not None]


def _is_turn(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "role" in entry


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:99] + "…"  # noqa: PLR2004 - enough to recognise it
