r"""Read a number the way people and models write it, exactly, and compare two of them.

    "$1,234.50"   "\frac{3}{4}"   "1 1/2"   "45\%"   "3.2 \times 10^5"   "72 apples"

Values are fractions, so nothing is lost in reading and 2021 never equals 2022. Every pattern here is linear in the
text: repetitions are possessive or bounded, and a numeral too long to matter is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = [
    "DEFAULT_ABSOLUTE_TOLERANCE",
    "DEFAULT_TOLERANCE",
    "Quantity",
    "find_quantities",
    "plain_markup",
    "read_quantity",
    "same_quantity",
]

DEFAULT_TOLERANCE = 0.001
"""The most that rounding may have changed a number, relative to the expected one."""
DEFAULT_ABSOLUTE_TOLERANCE = 1e-8
"""Differences up to this are floating-point noise."""

MAX_DIGITS = 400
"""A longer numeral is not read: exact arithmetic on it would cost more than it can be worth."""
MAX_EXPONENT = 400
"""Nor is a number with a larger power of ten."""

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
_UNIT = re.compile(r"\s*((?:[^\W\d_]|[°²³])(?:[^\W\d_]|[\s./°²³-]|\^\{?[23]\}?)*)")
_MAX_UNIT_WORDS = 4
_SHORT_UNIT = re.compile(r"[cdkm]?[glm][²³]?|s|h|hr|ft|in|yd|mi|lb|oz|am|pm|hz|[gkmt]b|[gkm]w|°[cf]?")
_NOT_UNITS = frozenset({"or", "and", "to", "pi", "sqrt", "sin", "cos", "tan", "log", "exp", "mod", "choose"})
_LONGEST_VARIABLE = 2
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
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
    """A number as written: its exact value, and what the writing says beside it."""

    value: Fraction
    text: str
    """The characters it was read from."""
    decimals: int | None
    """Digits after the point; `None` for a fraction, which is exact."""
    percent: bool = False
    unit: str = ""
    """Words after the number, in lower case; empty when there are none."""

    @property
    def number(self) -> float:
        """The value as a float; infinite where it does not fit one."""
        try:
            return float(self.value)
        except OverflowError:
            return float("inf") if self.value > 0 else float("-inf")


def plain_markup(text: str) -> str:
    """`text` with typography that does not change its meaning taken away."""
    for written, meant in _MARKUP:
        text = text.replace(written, meant)
    return _TEXT.sub(r" \1 ", text)


def find_quantities(text: str) -> Iterator[Quantity]:
    """Every number in `text`, in order, without units."""
    for match in _NUMBER.finditer(plain_markup(text)):
        quantity = _from_match(match)
        if quantity is not None:
            yield quantity


def read_quantity(text: str) -> Quantity | None:
    """The number that `text` as a whole is, with its unit; `None` if it is anything else."""
    bare = _without_dollars(plain_markup(text).strip().strip("*_`").strip()).rstrip(".,;:!?").strip()
    match = _NUMBER.match(bare)
    quantity = _from_match(match) if match else None
    if match is None or quantity is None:
        return None
    unit = _read_unit(bare[match.end() :])
    if unit is None:
        return None
    percent = quantity.percent or unit in ("percent", "per cent")
    currency = _CURRENCIES.get((match["currency"] or "").strip()[-1:], "")
    return replace(quantity, text=bare, percent=percent, unit="" if percent else unit or currency)


def _read_unit(rest: str) -> str | None:
    """The unit that `rest` names, possibly none (empty); `None` if it says something else."""
    if not rest.strip():
        return ""
    match = _UNIT.fullmatch(rest)
    words = match.group(1).lower().rstrip(".").split() if match else []
    # "5 or six" is not five of a unit, and "5 x" is a product: what is as short as a variable must be a known unit.
    if not words or len(words) > _MAX_UNIT_WORDS or not _NOT_UNITS.isdisjoint(words):
        return None
    if len(words[0]) <= _LONGEST_VARIABLE and not _SHORT_UNIT.fullmatch(words[0]):
        return None
    return " ".join(words)


def same_quantity(
    expected: Quantity,
    answer: Quantity,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    absolute_tolerance: float = DEFAULT_ABSOLUTE_TOLERANCE,
) -> bool:
    """Whether the two say the same number.

    Whole numbers are compared exactly, whatever the tolerance. Otherwise the one written with fewer decimals may be
    the other one rounded, if rounding changed it by no more than `tolerance` (relative): 3.14 stands for 3.14159, but
    12.51 not for 12.50. A percentage equals its number and its hundredth: 50%, 50 and 0.5 are the same answer.
    """
    decimals = [places for places in (expected.decimals, answer.decimals) if places is not None]
    pairs = [(expected.value, answer.value)]
    if expected.percent and not answer.percent:
        pairs.append((expected.value / 100, answer.value))
    elif answer.percent and not expected.percent:
        pairs.append((expected.value, answer.value / 100))
    return any(
        gold == given or _rounded(gold, given, decimals, Fraction(tolerance), Fraction(absolute_tolerance))
        for gold, given in pairs
    )


def _rounded(gold: Fraction, given: Fraction, decimals: list[int], relative: Fraction, absolute: Fraction) -> bool:
    """Whether the difference of two unequal numbers is rounding or noise."""
    difference = abs(gold - given)
    if gold.denominator == given.denominator == 1:
        return False
    if difference <= absolute:
        return True
    if gold.denominator == 1 or not decimals or difference > relative * abs(gold):
        return False
    # Half a unit of the coarser one's last place, either way: rounding half up and half to even are both in use.
    return difference <= Fraction(1, 2 * 10 ** min(decimals))


def _without_dollars(text: str) -> str:
    """`$…$` and `$$…$$` around the whole are mathematics, not money."""
    for _ in range(2):
        if len(text) > 1 and text.startswith("$") and text.endswith("$"):
            text = text[1:-1].strip()
    return text


def _from_match(match: re.Match[str]) -> Quantity | None:
    if match.end() - match.start() > MAX_DIGITS:
        return None
    value = _value(match)
    if value is None:
        return None
    if "-" in (match["sign"] or "") + (match["sign_after"] or ""):
        value = -value
    text = match.group().strip()
    decimal = match["decimal"]
    decimals = None if decimal is None else _decimals(decimal, match["power"])
    return Quantity(value, text, decimals, percent=match["percent"] is not None)


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


def _decimals(decimal: str, power: str | None) -> int:
    return max(0, len(decimal.partition(".")[2]) - _exponent(power))
