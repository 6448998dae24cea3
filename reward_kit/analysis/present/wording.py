# SPDX-License-Identifier: Apache-2.0
"""How figures are worded: the same in the terminal, in Markdown and in pictures."""

from __future__ import annotations

from math import isfinite

from reward_kit.statistics import Estimate

__all__ = [
    "NOTHING",
    "amount",
    "count",
    "difference",
    "difference_parts",
    "percent",
    "percent_range",
    "plain_score",
    "probability",
    "score",
    "score_difference",
    "share_range",
    "signed_score",
]

NOTHING = "–"
"""Stands where there is no figure."""

_MANY, _SOME, _FEW = 1_000, 100, 1e-4
"""From where on a number is told without decimals, in whole parts, or in powers of ten."""
_TEN = 10
"""Scores below it have three decimals."""
_SMALLEST_P, _SMALL_P = 1e-4, 0.01
_WIDE = 0.04
"""An interval this wide is told in whole points: more digits would promise what it takes back."""

_MOST_DIGITS = 3


def percent(estimate: Estimate | None, of: int | None = None) -> str:
    """A rate in per cent with its interval, `57.1 (52–61)`; where it rests on fewer than `of` queries, on how many."""
    if estimate is None:
        return NOTHING
    return f"{100 * estimate.value:.1f} ({percent_range(estimate)}){_rests_on(estimate, of)}"


def _rests_on(estimate: Estimate, of: int | None) -> str:
    return "" if of is None or estimate.count == of else f" of {count(estimate.count)}"


def percent_range(estimate: Estimate, between: str = "–") -> str:
    """The interval of a rate in per cent, such as `52–61`."""
    digits = 0 if estimate.high - estimate.low >= _WIDE else 1
    return f"{100 * estimate.low:.{digits}f}{between}{100 * estimate.high:.{digits}f}"


def score(estimate: Estimate | None, of: int | None = None) -> str:
    """A mean score with its interval, `0.524 (0.466–0.581)`; where it rests on fewer than `of` queries, on how many."""
    if estimate is None:
        return NOTHING
    if not isfinite(estimate.low):
        return f"{plain_score(estimate.value)} (one query has no interval)"
    between = "…" if estimate.low < 0 else "–"
    interval = f"({plain_score(estimate.low)}{between}{plain_score(estimate.high)})"
    return f"{plain_score(estimate.value)} {interval}{_rests_on(estimate, of)}"


def share_range(low: float, high: float) -> str:
    """Two shares in per cent, such as `53.5 to 90.0 %`."""
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def score_difference(value: float, low: float, high: float) -> str:
    """A difference of mean scores with its interval, such as `+0.126 (+0.070…+0.182)`."""
    return f"{signed_score(value)} ({signed_score(low)}…{signed_score(high)})"


def plain_score(value: float) -> str:
    """A score, to three decimals where it is small."""
    text = f"{value:.3f}" if abs(value) < _TEN else amount(value)
    return text.replace("-", "−")


def signed_score(value: float) -> str:
    """A difference of scores with its sign."""
    return plain_score(value) if value < 0 or not value else f"+{plain_score(value)}"


def difference(value: float, low: float, high: float) -> str:
    """A difference in points with its interval, such as `+2.5 (−1…+6)`."""
    change, (first, last) = difference_parts(value, low, high)
    return f"{change} ({first}…{last})"


def difference_parts(value: float, low: float, high: float) -> tuple[str, tuple[str, str]]:
    """A difference in points, and the ends of its interval."""
    digits = 0 if high - low >= _WIDE else 1
    while digits < _MOST_DIGITS and any(end and not round(100 * end, digits) for end in (low, high)):
        digits += 1  # an end that is not 0 is not told as 0: the p value beside it says on which side it lies
    return _signed(value, 1), (_signed(low, digits), _signed(high, digits))


def _signed(share: float, digits: int) -> str:
    text = f"{100 * share:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")


def probability(p: float) -> str:
    """A p value; beyond four places it says nothing more."""
    return f"<{_SMALLEST_P:.4f}" if p < _SMALLEST_P else f"{p:.4f}" if p < _SMALL_P else f"{p:.3f}"


def count(number: float) -> str:
    """A whole number, thousands apart."""
    return f"{number:,.0f}"


def amount(number: float) -> str:
    """Any number with about three digits that mean something."""
    if not isfinite(number):
        return NOTHING
    size = abs(number)
    if size >= _MANY:
        return f"{number:,.0f}"
    if size >= _SOME:
        return f"{number:.0f}"
    return f"{number:.3g}" if size >= _FEW or not size else f"{number:.2e}"
