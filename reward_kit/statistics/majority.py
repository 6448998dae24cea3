# SPDX-License-Identifier: Apache-2.0
"""Majority@k: how often the most frequent answer is right, when k of n answers are drawn; ties are drawn by lot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, fsum

__all__ = ["majority_at_k", "win_chances"]


def majority_at_k(counts: Sequence[int], correct: Sequence[float], k: int) -> float:
    """The chance that the vote of k answers is right.

    `counts` says how many of the n answers are in each group of equal answers, `correct` whether a group is right (or
    how likely it is).

    >>> round(majority_at_k([4, 3, 2, 1], [1, 0, 0, 0], 5), 6)
    0.559524
    """
    order = sorted(range(len(counts)), key=lambda group: -counts[group])
    chances = win_chances(tuple(counts[group] for group in order), k)
    return fsum(chance * correct[group] for chance, group in zip(chances, order, strict=True))


@lru_cache(maxsize=4096)
def win_chances(counts: tuple[int, ...], k: int) -> tuple[float, ...]:
    """The chance of each group to be the most frequent among k answers drawn from all of them, ties split evenly."""
    n = sum(counts)
    if not 1 <= k <= n:
        raise ValueError(f"k={k!r} of n={n!r} answers; k must be between 1 and n")
    if k == 1:
        return tuple(count / n for count in counts)
    if k == n:
        best = max(counts)
        return tuple((count == best) / counts.count(best) for count in counts)
    by_size = {
        size: _win_chance(size, [*counts[: (at := counts.index(size))], *counts[at + 1 :]], k) for size in {*counts}
    }
    return tuple(by_size[size] for size in counts)


def _win_chance(size: int, others: list[int], k: int) -> float:
    """The share of draws of k in which a group of `size` wins, each tie counted as its share."""
    won = [0] * (len(others) + 1)
    for votes in range(1, min(size, k) + 1):
        for tied, ways in enumerate(_ways_to_lose(others, k - votes, votes)):
            won[tied] += comb(size, votes) * ways
    every = comb(size + sum(others), k)  # which may be too large for a float: only whole numbers are divided
    return fsum(draws / ((tied + 1) * every) for tied, draws in enumerate(won))


def _ways_to_lose(others: list[int], drawn: int, limit: int) -> list[int]:
    """How many draws from the other groups leave none above `limit`, by how many of them reach it."""
    ways = [[0] * (drawn + 1) for _ in range(len(others) + 1)]
    ways[0][0] = 1
    for place, size in enumerate(others):
        most, picks = min(size, limit), _picks(size)
        is_last = place == len(others) - 1
        after = [[0] * (drawn + 1) for _ in ways]
        for tied, row in enumerate(ways):
            for total, count in enumerate(row):
                if not count:
                    continue
                left = drawn - total
                for votes in range(left if is_last else 0, min(most, left) + 1):  # the last takes all that is left
                    after[tied + (votes == limit)][total + votes] += count * picks[votes]
        ways = after
    return [row[drawn] for row in ways]


@lru_cache(maxsize=64)
def _picks(size: int) -> tuple[int, ...]:
    """In how many ways 0, 1, 2 … answers can be picked from a group of `size`."""
    return tuple(comb(size, votes) for votes in range(size + 1))
