"""The number that a numeral spells."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from reward_kit.mathematics.nodes import Number
from reward_kit.mathematics.tokens import Unreadable

__all__ = ["number"]

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
