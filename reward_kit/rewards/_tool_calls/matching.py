# SPDX-License-Identifier: Apache-2.0
"""The most pairs that can be made at once: maximum matching in a bipartite graph, by augmenting paths.

A greedy matcher that gives the first expected call the first answer that fits may leave the second one none.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["maximum_matching"]


def maximum_matching(fits: Sequence[Sequence[int]]) -> dict[int, int]:
    """For rows that each fit some columns, the largest set of pairs in which no row and no column occurs twice.

    Takes at most (rows × all that fit) steps. Returns column → row.

    >>> sorted(maximum_matching([[0, 1], [0]]).items())
    [(0, 1), (1, 0)]
    """
    row_of: dict[int, int] = {}
    for row in range(len(fits)):
        _place(row, fits, row_of)
    return row_of


def _place(first: int, fits: Sequence[Sequence[int]], row_of: dict[int, int]) -> None:
    """Give `first` a column, moving others along a path if need be. Breadth first, so that no stack grows."""
    came_from: dict[int, int] = {}
    queue = [first]
    for row in queue:
        for column in fits[row]:
            if column in came_from:
                continue
            came_from[column] = row
            if column not in row_of:
                _shift(column, first, came_from, row_of)
                return
            queue.append(row_of[column])


def _shift(column: int, first: int, came_from: dict[int, int], row_of: dict[int, int]) -> None:
    """Give each row on the path that ends at a free `column` the column it was reached by."""
    column_of = {row: held for held, row in row_of.items()}
    while True:
        row = came_from[column]
        left = column_of.get(row)
        row_of[column] = row
        if row == first or left is None:
            return
        column = left
