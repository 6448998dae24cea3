# SPDX-License-Identifier: Apache-2.0
"""Who plays whom: every player the same number of games, and nobody the same opponent twice."""

from __future__ import annotations

__all__ = ["pairings"]


def pairings(players: int, games: int) -> list[tuple[int, int]]:
    """Pairs in which each player occurs `games` times, or once with everybody where the group is no larger than that.

    Players sit in a circle, and each meets those 1, 2, … places further on. Where an odd number of games is asked of an
    odd number of players, which cannot be, each plays one more.

    >>> pairings(4, 2)
    [(0, 1), (1, 2), (2, 3), (0, 3)]
    >>> len(pairings(4, 9))
    6
    """
    most = min(max(games, 0), players - 1)
    pairs: list[tuple[int, int]] = []
    for step in range(1, most // 2 + 1):
        pairs += [_pair(player, (player + step) % players) for player in range(players)]
    if most > 0 and most % 2:
        pairs += _odd_round(players, most // 2 + 1)
    return list(dict.fromkeys(pairs))


def _odd_round(players: int, step: int) -> list[tuple[int, int]]:
    """One more game each: with the player across where the circle is even, else with the next one not yet met."""
    if players % 2 == 0:
        return [(player, player + players // 2) for player in range(players // 2)]
    return [_pair(player, (player + step) % players) for player in range(players)]


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
