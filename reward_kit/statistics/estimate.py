# SPDX-License-Identifier: Apache-2.0
"""What an estimator returns: a value, and the interval it may well lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Estimate", "Interval"]


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    """Minus infinity when one sample is all there is, and nothing bounds what others would say."""
    high: float
    """Infinity, likewise."""
    count: int
    """How many samples it rests on. The n answers to one sample count once: they are not independent."""
