"""Quote answers in reasons, however long they are."""

from __future__ import annotations

from typing import Final

__all__ = ["quoted", "shortened"]

_SHOWN: Final = 200


def shortened(text: str) -> str:
    """The beginning of a text, and a sign where more follows."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def quoted(value: object) -> str:
    """The value as Python writes it; a text is shortened before, anything else after."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(repr(value))
