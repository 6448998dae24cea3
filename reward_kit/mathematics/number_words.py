"""Numbers in English words: `twenty-one`, `one hundred and five`, `three quarters`, `two and a half`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

__all__ = ["spelled_number", "with_digits"]

_UNITS: Final = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS: Final = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS: Final = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100,
    "thousandth": 1000,
}  # fmt: skip
_LONGEST: Final = 90
_BEGINNINGS: Final = frozenset({*_UNITS, *_TENS, "half", "a", "minus", "negative"})
_WORDS: Final = re.compile(r"[a-z]+(?:[ -]+[a-z]+)*")


def spelled_number(text: str) -> Fraction | None:
    """The number that `text` spells out; `None` where it is anything else."""
    bare = text[: _LONGEST + 1].strip(" .$").lower()
    if len(text) > _LONGEST:
        return None
    if not _WORDS.fullmatch(bare):
        return None
    words = re.split(r"[ -]+", bare)
    sign = -1 if words[0] in ("minus", "negative") else 1
    found = _number(words[sign < 0 :])
    return None if found is None else sign * found


def with_digits(text: str) -> str | None:
    """`three hours` as `3 hours`, `one in five` as `1 in 5`; `None` where no number in words begins the text."""
    words = text[: _LONGEST + 1].strip(" .$").lower().split()
    if len(text) > _LONGEST or len(words) < 2 or re.split("-", words[0])[0] not in _BEGINNINGS:
        return None
    for count in range(len(words) - 1, 0, -1):
        found = spelled_number(" ".join(words[:count]))
        if found is None:
            continue
        rest = text.strip(" .$").split()[count:]
        if rest[0].lower() in ("a", "an"):  # half a mile
            del rest[0]
        for between in (["in"], ["out", "of"], ["to"]):
            other = spelled_number(" ".join(rest[len(between) :])) if rest[: len(between)] == between else None
            if other is not None:
                rest = [*between, str(other)]
        return f"{found} {' '.join(rest)}"
    return None


def _number(words: list[str]) -> Fraction | None:
    part = _PARTS.get(words[-1].removesuffix("s")) if words else None
    if part is None:
        whole = _whole(words)
        return None if whole is None else Fraction(whole)
    if "and" in words:  # two and three quarters; but one hundred and five sixteenths is anyone's guess
        at = words.index("and")
        whole, rest = _whole(words[:at]), _number(words[at + 1 :])
        return None if whole is None or rest is None or rest >= 1 or "and" in words[at + 1 :] else whole + rest
    over = 1 if words[:-1] in (["a"], ["one"], []) else _whole(words[:-1])
    return None if over is None or (not words[:-1] and part != 2) else Fraction(over, part)


def _whole(words: list[str]) -> int | None:
    """A whole number: groups of hundreds, tens and ones, each with its scale."""
    if words[-1:] == ["dozen"]:
        return {"": 12, "a": 12, "half a": 6}.get(" ".join(words[:-1])) or 12 * (_whole(words[:-1]) or 0) or None
    total = group = 0
    last = 10**15
    room = 1000
    if not words or words[-1] == "and":
        return None
    for word in words:
        if word in _SCALES and group and _SCALES[word] < last:
            total, last, group, room = total + group * _SCALES[word], _SCALES[word], 0, 1000
        elif word == "hundred" and 0 < group < 100:
            group, room = 100 * group, 100
        elif word in _TENS and room >= 100:
            group, room = group + _TENS[word], 10
        elif word in _UNITS and room > _UNITS[word] and room > 1 and not (group and not _UNITS[word]):
            group, room = group + _UNITS[word], 1
        elif word != "and" or not (group or total):
            return None
    return total + group
