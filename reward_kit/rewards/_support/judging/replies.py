"""A judge's reply, read strictly: the last line is the verdict and no other line is one, or there is none."""

from __future__ import annotations

import re
from typing import Literal

from reward_kit.answers.reasoning import without_reasoning

__all__ = ["Choice", "read_choice", "read_grade"]

Choice = Literal["A", "B", "TIE"]
"""Which of two answers is better."""

_VERDICT = re.compile(r"^[ \t]*VERDICT:[ \t]*(?P<verdict>[^\n]*)$", re.MULTILINE)
_LONGEST = 100_000
"""Characters of a reply; no judge's reasons are that long."""


def read_grade(reply: str, scale: tuple[int, int]) -> int | None:
    """The grade, a whole number on the scale; None where the reply gives none, or several.

    >>> read_grade("Right.\\nVERDICT: 7", (0, 10)), read_grade("VERDICT: 7/10", (0, 10)), read_grade("7", (0, 10))
    (7, None, None)
    """
    verdict = _verdict(reply)
    if verdict is None or not re.fullmatch(r"-?[0-9]{1,6}", verdict):
        return None
    low, high = scale
    return int(verdict) if low <= int(verdict) <= high else None


def read_choice(reply: str) -> Choice | None:
    """The choice between A and B; None where the reply makes none, or several.

    >>> read_choice("Both are fine.\\nVERDICT: TIE"), read_choice("VERDICT: A\\nVERDICT: B")
    ('TIE', None)
    """
    match _verdict(reply):
        case "A" | "B" | "TIE" as choice:
            return choice
    return None


def _verdict(reply: str) -> str | None:
    said = without_reasoning(reply[-_LONGEST:]).rstrip()
    found = list(_VERDICT.finditer(said))
    if len(found) != 1 or found[0].end() != len(said):
        return None
    return found[0]["verdict"].strip()
