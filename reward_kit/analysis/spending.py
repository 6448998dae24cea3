"""What requests took: tokens, time and money, as quantiles and totals.

Candidates that were asked for together share one request. Its tokens and its bill stand on the first of them, so the
others are left out: half of all requests did not cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reward_kit.analysis.experiment import Numbers
from reward_kit.analysis.reading import Source, load

__all__ = ["Quantiles", "quantiles", "spending"]

MEASURES = ("prompt_tokens", "completion_tokens", "latency_ms", "cost")
"""What is measured of a candidate, in the order it is told."""

_SHARES = (0.5, 0.9, 0.99)


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


def spending(source: Source) -> dict[str, Quantiles]:
    """The quantiles of each measure that the experiment noted."""
    experiment = load(source)
    found = {name: values for name in MEASURES if (values := experiment.numbers(name)) is not None}
    asked, bill = found.get("prompt_tokens"), found.get("cost")
    if asked is not None and bill is not None:
        found["cost"] = np.where(np.isnan(asked) & (bill == 0), np.nan, bill)
    return {name: quantiles(values) for name, values in found.items()}


def quantiles(values: Numbers) -> Quantiles:
    """The quantiles of values of which NaN are none; there must be one that is not."""
    known = values[~np.isnan(values)]
    p50, p90, p99 = (float(value) for value in np.quantile(known, _SHARES))
    return Quantiles(len(known), float(known.sum()), float(known.mean()), p50, p90, p99, float(known.max()))
