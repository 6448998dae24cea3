"""The fast lane: two plain numbers, compared before anything is parsed."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reward_kit.mathematics.nodes import Number

__all__ = ["foreign_number", "plain_number", "with_point"]

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
_LONGEST: Final = 64


def plain_number(text: str) -> Number | None:
    """The number that `text` is, if it is nothing but digits, a sign, thousands separators, a point and dollars."""
    if len(text) > _LONGEST:
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
    """The number that `text` is with a decimal comma, or with points or spaces between thousands."""
    if len(text) > _LONGEST:
        return None
    match = _FOREIGN.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, pointed, behind, thousands, spaced = match.groups()
    digits = (whole or pointed or thousands or spaced).replace(".", "").replace(" ", "")
    places = decimals or behind or ""
    value = Fraction(int(digits + places), 10 ** len(places))
    return -value if sign == "-" else value


def with_point(text: str) -> str | None:
    """`3,5 cm` as `3.5 cm`: a number with a comma and something behind it; `None` if `text` is anything else."""
    if len(text) > _LONGEST or "," not in text:
        return None
    if (grouped := _GROUPED_COMMA.fullmatch(text)) is not None:  # 1.000,50 €
        before, whole, rest = grouped.groups()
        return f"{before}{whole.replace('.', '')}.{rest}"
    match = _COMMA.fullmatch(text)
    return f"{match[1]}.{match[2]}" if match is not None else None
