# SPDX-License-Identifier: Apache-2.0
"""Checks of a reward's parameters: a wrong one is an error that names it, says what it takes, and what was given."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from reward_kit.typed_interface import RewardContractError

__all__ = ["compiled", "listed", "number", "one_of", "pair", "whole"]


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """Require one of the words in `choices`."""
    if value not in choices:
        raise RewardContractError(f"Parameter {name!r} is {value!r}; choose one of {', '.join(map(repr, choices))}.")


def whole(name: str, value: object, at_least: int) -> None:
    """Require a whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise RewardContractError(f"Parameter {name!r} is {value!r}; give a whole number of at least {at_least}.")


def number(name: str, value: object, *, above: float = -math.inf, at_most: float = math.inf) -> None:
    """Require a finite number in the interval (above, at_most]."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not usable or not above < float(value) <= at_most:  # type: ignore[arg-type]  # `usable` says that it is a number
        bounds = f" above {above:g}" * (above > -math.inf) + " and" * (math.isfinite(above + at_most))
        bounds += f" up to {at_most:g}" * (at_most < math.inf)
        raise RewardContractError(f"Parameter {name!r} is {value!r}; give a number{bounds}.")


def listed(name: str, value: object, what: str) -> list[Any]:
    """The entries of a list that is not empty; a text is none."""
    if not isinstance(value, list | tuple) or not value:
        raise RewardContractError(f"Parameter {name!r} is {value!r}; give a list of {what}.")
    return list(value)


def pair(name: str, value: object) -> tuple[float, float]:
    """Two numbers, the lower first."""
    entries = listed(name, value, "two numbers, such as [0, 1]")
    if len(entries) != 2:  # noqa: PLR2004 - a pair
        raise RewardContractError(f"Parameter {name!r} is {value!r}; give two numbers, such as [0, 1].")
    low, high = entries
    number(name, low)
    number(name, high, above=low)
    return float(low), float(high)


def compiled(name: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """A regular expression of the user's."""
    try:
        return re.compile(pattern, flags)
    except (re.error, TypeError) as error:
        raise RewardContractError(
            f"Parameter {name!r} is {pattern!r}, no regular expression: {error}. Correct it."
        ) from error
