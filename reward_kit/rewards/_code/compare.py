# SPDX-License-Identifier: Apache-2.0
"""Whether an output, or a value, is the expected one. On plain data, here, never where the code runs.

Outputs are compared token by token: white space between them does not count, and two decimal numbers that are written
differently are the same where they are equal (`3.0` and `3`, `2.50` and `2.5`). Values are compared as Python does,
with lists and tuples alike, because JSON knows only one of them. Everything here is linear in what it is given.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

__all__ = ["DEFAULT", "OneOf", "OutputComparison", "same_output", "same_value", "similarity"]

_MOST = 1e300
# A point needs a digit after it: `1.` is more often the number of an item in a list than the number 1.
_DECIMAL = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{1,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class OutputComparison:
    """How strictly outputs and values are compared."""

    whitespace: Literal["tokens", "lines", "exact"] = "tokens"
    """`tokens`: white space only separates. `lines`: only that at the end of lines and of the output is ignored."""
    tolerance: float = 0.0
    """How far two numbers may be apart, absolutely or relative to the expected one. 0: not at all."""


DEFAULT = OutputComparison()
"""By tokens, and numbers exactly."""


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def same_output(expected: str, printed: str, how: OutputComparison = DEFAULT) -> bool:
    """Whether a program printed what it should."""
    if expected == printed:
        return True
    if how.whitespace == "exact":
        return False
    if how.whitespace == "lines":
        return [line.rstrip() for line in expected.rstrip().splitlines()] == [
            line.rstrip() for line in printed.rstrip().splitlines()
        ]
    gold, given = expected.split(), printed.split()
    return len(gold) == len(given) and all(_same_token(*pair, how.tolerance) for pair in zip(gold, given, strict=True))


def _same_token(gold: str, given: str, tolerance: float) -> bool:
    if gold == given:
        return True
    if not (_DECIMAL.fullmatch(gold) and _DECIMAL.fullmatch(given)):
        return False
    if tolerance:
        return _near(float(gold), float(given), tolerance)
    return _has_point(gold, given) and Decimal(gold) == Decimal(given)


def _has_point(*numerals: str) -> bool:
    """Whether one is written as a decimal: `007` is not `7`, which may be names and not numbers."""
    return any("." in numeral or "e" in numeral.lower() for numeral in numerals)


def _near(gold: float, given: float, tolerance: float) -> bool:
    return gold == given or math.isclose(gold, given, rel_tol=tolerance, abs_tol=tolerance)


def similarity(one: str, other: str) -> float:
    """How alike two texts are, in [0, 1]: the share of characters, and of pairs of neighbours, that both have."""
    if one == other:
        return 1.0
    parts = [Counter(itertools.chain(text, itertools.pairwise(text))) for text in (one, other)]
    total = sum(count.total() for count in parts)
    shared = (parts[0] & parts[1]).total()
    return min(2 * shared / total, 0.999) if total else 0.0


class OneOf(tuple[Any, ...]):
    """Either of these is right."""

    __slots__ = ()


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def same_value(expected: Any, given: Any, tolerance: float = 0.0) -> bool:
    """Whether a function returned what it should. Both are plain data."""
    try:
        return _same(expected, given, tolerance)
    except RecursionError:  # nested as nothing is that was expected
        return False


def _same(expected: Any, given: Any, tolerance: float) -> bool:
    if isinstance(expected, OneOf):
        return any(_same(each, given, tolerance) for each in expected)
    if isinstance(expected, (list, tuple)) and isinstance(given, (list, tuple)):
        pairs = zip(expected, given, strict=False)
        return len(expected) == len(given) and all(_same(*pair, tolerance) for pair in pairs)
    if isinstance(expected, dict) and isinstance(given, dict):
        return _same_dict(expected, given, tolerance)
    if tolerance and _is_number(expected) and _is_number(given):
        return _near(expected, given, tolerance)
    return bool(expected == given) or _both_nan(expected, given)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < _MOST


def _both_nan(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)


def _same_dict(expected: dict[Any, Any], given: dict[Any, Any], tolerance: float) -> bool:
    """Keys that JSON could only write as text match by what it writes."""
    if len(expected) != len(given):
        return False
    if expected.keys() != given.keys():
        given = {_as_json_key(key): value for key, value in given.items()}
    return expected.keys() == given.keys() and all(
        _same(value, given[key], tolerance) for key, value in expected.items()
    )


def _as_json_key(key: Any) -> Any:
    match key:
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case int() | float():
            return repr(key)
    return key
