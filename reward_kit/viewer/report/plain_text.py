# SPDX-License-Identifier: Apache-2.0
"""Texts of others as they may stand in a page: nothing invisible acts, nothing is too long, no credential is told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from reward_kit.redaction import blot

__all__ = ["CutText", "cut", "limit_within", "visible"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of text: they could make a line read as another one."""
_PICTURES, _DELETE = 0x2400, "\x7f"
_LIMITS = (20_000, 12_000, 8_000, 6_000, 4_000, 3_000, 2_000, 1_500, 1_000, 700, 500, 350, 250, 160)
_SLACK = 1.1
"""A text that is longer than the limit by less is not cut."""
_LOOKED_AT = 2_000
"""Characters of a text from which it is told how many bytes its characters take."""


class CutText(NamedTuple):
    """The beginning of a text, and how many characters are left out."""

    text: str
    left_out: int


def visible(text: str) -> str:
    """The text with control characters and marks of direction shown as signs."""
    text = text.replace("\r\n", "\n")
    text = _CONTROL.sub(lambda found: "␡" if found[0] == _DELETE else chr(_PICTURES + ord(found[0])), text)
    text = _TURNING.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
    return blot(text.encode("utf-8", "replace").decode())


def cut(text: str, limit: int) -> CutText:
    """The text up to `limit` characters; a little more where little would be left out."""
    if len(text) <= limit * _SLACK:
        return CutText(visible(text), 0)
    return CutText(visible(text[:limit]), len(text) - limit)


def limit_within(texts: Iterable[str], budget: int) -> int:
    """The largest limit for each text at which all of them together stay within a budget of bytes, once escaped."""
    known = [(len(text), _bytes_each(text)) for text in texts if text]
    for limit in _LIMITS:
        if sum(min(length, limit * _SLACK) * each for length, each in known) <= budget:
            return limit
    return _LIMITS[-1]


def _bytes_each(text: str) -> float:
    shown = text[:_LOOKED_AT]
    return len(escape(shown).encode("utf-8", "replace")) / len(shown)
