"""The fast lane: two plain numbers, compared before anything is parsed."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from reward_kit.rewards._support.mathematics.nodes import Number

__all__ = ["plain_number"]

_PLAIN: Final = re.compile(r"\s*\$?\s*([+-]?)\s*\$?(?:(\d{1,3}(?:,\d{3})+|\d+)(\.\d*)?|(\.\d+))\s*\$?\s*\.?\s*", re.ASCII)
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
    return Number(value, len(places), len((digits + places).lstrip("0")), grouped) if places else Number(value, None, 0, grouped)
