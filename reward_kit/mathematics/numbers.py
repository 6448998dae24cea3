# SPDX-License-Identifier: Apache-2.0
"""Numbers as people write them: digits, the separators of other countries, English words.

number          what a token of digits spells: `1,234.5`, `1e6`
plain_number    a text that is nothing but digits: most answers are, and are never parsed
foreign_number  `3,05` and `1.234.567`, with the separators of another country
spelled_number  `twenty-one`, `three quarters`, `two and a half`
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reward_kit.mathematics.nodes import Number
from reward_kit.mathematics.tokens import Unreadable

__all__ = [
    "foreign_number",
    "in_digits",
    "number",
    "plain_number",
    "roman_number",
    "spelled_number",
    "with_digits",
    "with_point",
]


_MAX_POWER_OF_TEN: Final = 4_000


def number(text: str) -> Number:
    """The number that a token spells."""
    digits, _, power = text.lower().partition("e")
    plain = digits.replace(",", "")
    whole, point, decimals = plain.partition(".")
    exponent = int(power or 0)
    if abs(exponent) > _MAX_POWER_OF_TEN:
        raise Unreadable("a power of ten out of bounds")
    value = Fraction(int((whole or "0") + decimals), 10 ** len(decimals)) if decimals else Fraction(int(whole))
    if exponent:
        value *= Fraction(10) ** exponent
    grouped = digits if "," in digits else ""
    if not point and not power:
        return Number(value, grouped=grouped)
    return Number(value, max(0, len(decimals) - exponent), len((whole + decimals).lstrip("0")), grouped)


# ── numbers in digits ────────────────────────────────────────────────────────────────────────────────────────────────


_PLAIN: Final = re.compile(
    r"\s*\$?\s*([+-]?)\s*\$?(?:(\d{1,3}(?:,\d{3})+|\d+)(\.\d*)?|(\.\d+))\s*\$?\s*\.?\s*", re.ASCII
)
_FOREIGN: Final = re.compile(
    r"\s*\$?([+-]?)(?:(0|\d+(?=,(?:0\d|\d{4,})\$?\s*\Z)|\d{4,}(?=,\d\d\$?\s*\Z)),(\d+)"
    r"|(\d{1,3}(?:\.\d{3})+),(\d+)|(\d{1,3}(?:\.\d{3}){2,})|(\d{1,3}(?: \d{3})+))\$?\s*",
    re.ASCII,
)
"""Numbers that show whose separators they have: 0,5 and 3,05 and 3,1416 and 1000,99 and 1.234,5 and 1.234.567.
Not 3,5 and not 1,234: those are a list and a thousand."""
_COMMA: Final = re.compile(
    r"([^.,;()\[\]]{0,40}?(?<!\d)(?:0|\d{1,12}(?!,\d{3}(?!\d)))),"
    r"(\d{1,9}(?![\d.])\s*(?!and\b|or\b)[^,;()\[\]\d\s][^,;()\[\]]{0,40})"
)
_GROUPED_COMMA: Final = re.compile(r"([^\d.,;()\[\]]{0,10})(\d{1,3}(?:\.\d{3})++),(\d{1,9}(?!\d)[^,;()\[\]\d]{0,40})")
_LONGEST_DIGITS: Final = 64
_ROMAN_DIGITS: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ROMAN: Final = re.compile(r"C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def plain_number(text: str) -> Number | None:
    """The number that `text` is, if it is nothing but digits, a sign, thousands separators, a point and dollars."""
    if len(text) > _LONGEST_DIGITS:
        return None
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, only = match.groups()
    places = (decimals or only or "")[1:]
    digits = (whole or "").replace(",", "")
    value = Fraction(int(digits + places), 10 ** len(places)) if places else Fraction(int(digits))
    grouped = whole if whole is not None and "," in whole else ""
    if sign == "-":
        value, grouped = -value, grouped and f"-{grouped}"
    return (
        Number(value, len(places), len((digits + places).lstrip("0")), grouped)
        if places
        else Number(value, None, 0, grouped)
    )


def foreign_number(text: str) -> Fraction | None:
    """The number that `text` is with a decimal comma, with points or spaces between thousands, or as Rome wrote it."""
    if len(text) > _LONGEST_DIGITS:
        return None
    if text[:1] in _ROMAN_DIGITS and (roman := roman_number(text)) is not None:
        return Fraction(roman)
    match = _FOREIGN.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, pointed, behind, thousands, spaced = match.groups()
    digits = (whole or pointed or thousands or spaced).replace(".", "").replace(" ", "")
    places = decimals or behind or ""
    value = Fraction(int(digits + places), 10 ** len(places))
    return -value if sign == "-" else value


def roman_number(text: str) -> int | None:
    """The number that two or more Roman digits are, up to 399; `None` for anything else. CD is a segment, too."""
    if len(text) < 2 or _ROMAN.fullmatch(text) is None or not set(text) & set("IVX"):
        return None
    values = [_ROMAN_DIGITS[digit] for digit in text]
    return sum(-one if one < following else one for one, following in zip(values, [*values[1:], 0], strict=True))


def with_point(text: str) -> str | None:
    """`3,5 cm` as `3.5 cm`: a number with a comma and something behind it; `None` if `text` is anything else."""
    if len(text) > _LONGEST_DIGITS or "," not in text:
        return None
    if (grouped := _GROUPED_COMMA.fullmatch(text)) is not None:  # 1.000,50 €
        before, whole, rest = grouped.groups()
        return f"{before}{whole.replace('.', '')}.{rest}"
    match = _COMMA.fullmatch(text)
    return f"{match[1]}.{match[2]}" if match is not None else None


# ── numbers in words ─────────────────────────────────────────────────────────────────────────────────────────────────


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
_LONGEST_WORDS: Final = 90
_BEGINNINGS: Final = frozenset({*_UNITS, *_TENS, "half", "a", "minus", "negative"})
_DIGITS_BEGIN: Final = frozenset({*_UNITS, *_TENS})
_SPELLED: Final = re.compile(
    rf"\b(?:{'|'.join([*_UNITS, *_TENS])})\b"
    rf"(?:[\s-]+(?:and\s+)?(?:{'|'.join([*_UNITS, *_TENS, *_SCALES, 'hundred'])})\b)*"
    rf"(?:[\s-]+point(?:\s+(?:{'|'.join([*_UNITS][:10])})\b)+|(?:[\s-]+and\s+an?)?[\s-]+(?:{'|'.join(_PARTS)})s?\b)?",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"[a-z]+(?:[ -]+[a-z]+)*")


def spelled_number(text: str) -> Fraction | None:
    """The number that `text` spells out; `None` where it is anything else."""
    bare = text[: _LONGEST_WORDS + 1].strip(" .$").lower()
    if len(text) > _LONGEST_WORDS:
        return None
    if not _WORDS.fullmatch(bare):
        return None
    words = re.split(r"[ -]+", bare)
    sign = -1 if words[0] in ("minus", "negative") else 1
    found = _from_words(words[sign < 0 :])
    return None if found is None else sign * found


def with_digits(text: str) -> str | None:
    """`three hours` as `3 hours`, `one in five` as `1 in 5`; `None` where no number in words begins the text."""
    words = text[: _LONGEST_WORDS + 1].strip(" .$").lower().split()
    if len(text) > _LONGEST_WORDS or len(words) < 2 or re.split("-", words[0])[0] not in _BEGINNINGS:
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
        return f"{found} {' '.join(_in_digits(rest))}"
    return None


def in_digits(text: str) -> str:
    """`text` with each number that it spells out in digits: `two` as 2, `two thirds` as 2/3, `one point five`."""
    return _SPELLED.sub(_digits_of, text)


def _digits_of(match: re.Match[str]) -> str:
    number = spelled_number(match[0])
    if number is None:
        return match[0]
    return f"{float(number)}" if "point" in match[0].lower() else str(number)


def _in_digits(words: list[str]) -> list[str]:
    """Words in which each number that stands in words is in digits."""
    found: list[str] = []
    for word in words:
        number = spelled_number(word) if re.split("-", word.lower())[0] in _DIGITS_BEGIN else None
        found.append(word if number is None or number.denominator > 1 else str(number))
    return found


def _from_words(words: list[str]) -> Fraction | None:
    if "point" in words[:-1]:  # three point one four
        at = words.index("point")
        whole, digits = _whole_from_words(words[:at]), [_UNITS.get(word, 10) for word in words[at + 1 :]]
        if whole is None or max(digits) > 9:
            return None
        return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))
    part = _PARTS.get(words[-1].removesuffix("s")) if words else None
    if part is None:
        whole = _whole_from_words(words)
        return None if whole is None else Fraction(whole)
    if "and" in words:  # two and three quarters; but one hundred and five sixteenths is anyone's guess
        at = words.index("and")
        whole, rest = _whole_from_words(words[:at]), _from_words(words[at + 1 :])
        return None if whole is None or rest is None or rest >= 1 or "and" in words[at + 1 :] else whole + rest
    over = 1 if words[:-1] in (["a"], ["one"], []) else _whole_from_words(words[:-1])
    if over is None or (not words[:-1] and part != 2) or (over > 1 and not words[-1].endswith("s")):
        return None  # the twenty-fifth
    return Fraction(over, part)


def _whole_from_words(words: list[str]) -> int | None:
    """A whole number: groups of hundreds, tens and ones, each with its scale."""
    if words[-1:] == ["dozen"]:
        return (
            {"": 12, "a": 12, "half a": 6}.get(" ".join(words[:-1]))
            or 12 * (_whole_from_words(words[:-1]) or 0)
            or None
        )
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
