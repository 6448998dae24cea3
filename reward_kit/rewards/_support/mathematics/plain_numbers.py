"""The fast lane: two plain numbers, compared before anything is parsed."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reward_kit.rewards._support.mathematics.nodes import Number

__all__ = ["foreign_number", "in_cents", "plain_number", "with_point"]

_PLAIN: Final = re.compile(
    r"\s*\$?\s*([+-]?)\s*\$?(?:(\d{1,3}(?:,\d{3})+|\d+)(\.\d*)?|(\.\d+))\s*\$?\s*\.?\s*", re.ASCII
)
_FOREIGN: Final = re.compile(
    r"\s*\$?([+-]?)(?:(\d+),(\d+)|(\d{1,3}(?:\.\d{3})+),(\d+)|(\d{1,3}(?:\.\d{3}){2,})|(\d{1,3}(?: \d{3})+))\$?\s*",
    re.ASCII,
)
_COMMA: Final = re.compile(r"([^.,;()\[\]]{0,40}?\d),(\d{1,9}(?![\d.])[^,;()\[\]]{1,40})")
_DOLLARS: Final = re.compile(r"\s*\\?\$\s?(\d[\d,]{0,20}(?:\.\d{1,2})?)\$?\s*")
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
    match = _COMMA.fullmatch(text) if len(text) <= _LONGEST else None
    return f"{match[1]}.{match[2]}" if match is not None else None


def in_cents(text: str) -> str:
    """`$0.75` as `75 cents`, and `75¢` too; any other text as it is."""
    match = _DOLLARS.fullmatch(text) if len(text) <= _LONGEST else None
    if match is not None:
        return f"{Fraction(match[1].replace(',', '')) * 100} cents"
    return text.replace("¢", " cents")
