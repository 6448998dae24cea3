# SPDX-License-Identifier: Apache-2.0
"""Best-of-k: how often the answer with the highest score is right, when k of n scored answers are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import comb, fsum

__all__ = ["best_of_k", "rank_weights"]


def best_of_k(scores: Sequence[float], correct: Sequence[float], k: int) -> float:
    """The chance that the best-scored of k answers, drawn from these, is right; of equal scores each may be picked.

    >>> best_of_k([0.1, 0.9, 0.5], [0, 1, 0], 2)
    0.6666666666666666
    """
    if len(scores) != len(correct):
        raise ValueError(f"{len(scores)} scores for {len(correct)} answers; give one score an answer")
    weights = rank_weights(len(scores), k)
    ranked = sorted(zip(scores, correct, strict=True), key=lambda pair: pair[0])
    expected, rank = [], 0
    for _, level in groupby(ranked, key=lambda pair: pair[0]):
        rights = [right for _, right in level]
        expected.append(fsum(weights[rank : rank + len(rights)]) * fsum(rights) / len(rights))
        rank += len(rights)
    return fsum(expected)


def rank_weights(n: int, k: int) -> list[float]:
    """For each rank of n answers, worst first, the chance that it is the best of k drawn: C(rank, k-1) / C(n, k)."""
    if not 1 <= k <= n:
        raise ValueError(f"k={k!r} of n={n!r} answers; k must be between 1 and n")
    every = comb(n, k)
    return [comb(rank, k - 1) / every for rank in range(n)]
