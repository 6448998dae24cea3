# SPDX-License-Identifier: Apache-2.0
"""What requests took: tokens, time and money, as quantiles and totals.

Candidates that were asked for together share one request. Its tokens and its bill stand on the first of them, so the
others are left out: half of all requests did not cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reward_kit.analysis.judged_answers import Numbers
from reward_kit.analysis.loading import ResultsLike, load

__all__ = ["Quantiles", "quantiles", "spending"]

MEASURES = ("prompt_tokens", "completion_tokens", "latency_ms", "cost")
"""What is measured of a candidate, in the order it is told."""

_SHARES = (0.5, 0.9, 0.99)
_COUNTABLE = 1 << 22
"""Whole numbers below it are counted, which takes a tenth of the time of sorting them."""
_SAMPLE = 1_000
"""Numbers that are looked at first, to see whether they are whole."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A measure over the requests that have it."""

    count: int
    """Requests it was noted for."""
    total: float
    mean: float
    p50: float
    p90: float
    p99: float
    largest: float


def spending(source: ResultsLike) -> dict[str, Quantiles]:
    """The quantiles of each measure that the experiment noted."""
    experiment = load(source)
    found = {name: values for name in MEASURES if (values := experiment.numbers(name)) is not None}
    prompt_tokens, bill = found.get("prompt_tokens"), found.get("cost")
    if prompt_tokens is not None and bill is not None:
        found["cost"] = np.where(np.isnan(prompt_tokens) & (bill == 0), np.nan, bill)
    return {name: quantiles(values) for name, values in found.items()}


def quantiles(values: Numbers) -> Quantiles:
    """The quantiles of values of which NaN are none; there must be one that is not."""
    missing = np.isnan(values)
    known = values[~missing] if missing.any() else values
    total, largest = float(known.sum()), float(known.max())
    p50, p90, p99 = _counted(known, largest) or np.quantile(known, _SHARES).tolist()
    return Quantiles(len(known), total, total / len(known), p50, p90, p99, largest)


def _counted(known: Numbers, largest: float) -> list[float] | None:
    """The same quantiles from how often each whole number occurs; None where they are not such numbers."""
    if not 0 <= known.min() <= largest < _COUNTABLE:
        return None
    if not np.array_equal(known[:_SAMPLE], np.floor(known[:_SAMPLE])):
        return None
    whole = known.astype(np.int64)
    if not np.array_equal(whole, known):
        return None
    below = np.cumsum(np.bincount(whole))
    ranks = np.array(_SHARES) * (len(known) - 1)
    lower = np.searchsorted(below, np.floor(ranks), side="right")
    upper = np.searchsorted(below, np.ceil(ranks), side="right")
    between: Numbers = lower + (upper - lower) * (ranks - np.floor(ranks))
    return [float(value) for value in between]
