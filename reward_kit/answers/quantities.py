# SPDX-License-Identifier: Apache-2.0
r"""Find the numbers in a text, the way people and models write them, exactly.

    "$1,234.50"   "\frac{3}{4}"   "1 1/2"   "45\%"   "3.2 \times 10^5"

Values are fractions, so nothing is lost in reading. Every pattern here is linear in the text: repetitions are
possessive or bounded, and a numeral too long to matter is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Quantity", "find_quantities"]

MAX_DIGITS = 400
"""A longer numeral is not read: exact arithmetic on it would cost more than it can be worth."""
MAX_EXPONENT = 400
"""Nor is a number with a larger power of ten."""

_LONGEST_UNIT = 48

_PLAIN = r"(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)"
_DECIMAL = rf"(?:{_PLAIN}(?:\.\d++)?|\.\d++)"
_POWER = r"(?:[eE][+-]?\d++|\s{0,4}(?:\\times|\\cdot|[x×*])\s{0,4}10\s{0,2}\^\s{0,2}\{?[+-]?\d++\}?)"
_LATEX_FRACTION = r"\\frac\s{0,4}\{\s{0,4}[+-]?\d++\s{0,4}\}\s{0,4}\{\s{0,4}\d++\s{0,4}\}"
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+-]\s{0,2})?(?P<currency>\\?[$€£¥]\s{0,2})?(?P<sign_after>[+-])?"
    rf"(?:(?P<whole>\d++)?\s{{0,2}}(?P<latex>{_LATEX_FRACTION})"
    r"|(?P<mixed>\d++\s{1,2}\d++\s{0,1}/\s{0,1}\d++)"
    r"|(?P<over>\d++\s{0,2}/\s{0,2}\d++)"
    rf"|(?P<decimal>{_DECIMAL})(?P<power>{_POWER})?)"
    r"(?P<percent>\s{0,2}\\?%)?"
    # "2x" is not a number; "2g", "2h", "2l", "2m" and "2s" may be one with its unit.
    r"(?![a-fi-kn-rt-zA-Z](?![A-Za-z]))"
)
_INTEGERS = re.compile(r"[+-]?\d++")
_MARKUP = (
    ("\\dfrac", "\\frac"),
    ("\\tfrac", "\\frac"),
    ("\\cfrac", "\\frac"),
    ("\u2212", "-"),
    ("\\left", ""),
    ("\\right", ""),
    ("\\,", ""),
    ("\\!", ""),
    ("\\;", " "),
    ("\\:", " "),
    ("\\ ", " "),
    ("{,}", ","),
    ("\u2009", ""),
    ("\u202f", ""),
    ("\u00a0", " "),
    ("~", " "),
    ("\\(", ""),
    ("\\)", ""),
    ("\\[", ""),
    ("\\]", ""),
    ("^\\circ", "°"),
    ("^{\\circ}", "°"),
)
_TEXT = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|operatorname)\s{0,2}\{([^{}]*+)\}")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, and its exact value."""

    value: Fraction
    text: str
    """The characters it was read from."""
    rest: str = ""
    """What follows it, as far as a unit may reach."""

    @property
    def number(self) -> float:
        """The value as a float; infinite where it does not fit one."""
        try:
            return float(self.value)
        except OverflowError:
            return float("inf") if self.value > 0 else float("-inf")


def _plain_markup(text: str) -> str:
    """`text` with typography that does not change its meaning taken away."""
    for written, meant in _MARKUP:
        text = text.replace(written, meant)
    return _TEXT.sub(r" \1 ", text)


def find_quantities(text: str) -> Iterator[Quantity]:
    """Every number in `text`, in order, without units."""
    plain = _plain_markup(text)
    for match in _NUMBER.finditer(plain):
        quantity = _from_match(match, plain[match.end() : match.end() + _LONGEST_UNIT])
        if quantity is not None:
            yield quantity


def _from_match(match: re.Match[str], rest: str) -> Quantity | None:
    if match.end() - match.start() > MAX_DIGITS:
        return None
    value = _value(match)
    if value is None:
        return None
    if "-" in (match["sign"] or "") + (match["sign_after"] or ""):
        value = -value
    return Quantity(value, match.group().strip(), rest)


def _value(match: re.Match[str]) -> Fraction | None:
    if match["decimal"] is not None:
        exponent = _exponent(match["power"])
        digits = match["decimal"].replace(",", "")
        return Fraction(digits) * Fraction(10) ** exponent if abs(exponent) <= MAX_EXPONENT else None
    parts = [int(part) for part in _INTEGERS.findall(match["latex"] or match["mixed"] or match["over"])]
    if match["whole"]:
        parts.insert(0, int(match["whole"]))
    *whole, over, under = parts
    return None if under == 0 else sum(whole) + Fraction(over, under)


def _exponent(power: str | None) -> int:
    return 0 if power is None else int(_INTEGERS.findall(power)[-1])
