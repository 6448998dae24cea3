# SPDX-License-Identifier: Apache-2.0
"""Pairs are made so that as many as possible agree: compared with trying everything."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.rewards._tool_calls.matching import maximum_matching

GRAPHS = st.lists(st.lists(st.integers(0, 5), max_size=6, unique=True), max_size=6)


def by_trying_everything(fits: list[list[int]]) -> int:
    columns = [*range(6), *[None] * len(fits)]
    return max(
        sum(column in row for row, column in zip(fits, chosen, strict=False) if column is not None)
        for chosen in permutations(columns, len(fits))
    )


@given(GRAPHS.filter(lambda fits: len(fits) <= 4))
def test_no_larger_set_of_pairs_exists(fits: list[list[int]]) -> None:
    pairs = maximum_matching(fits)
    assert all(column in fits[row] for column, row in pairs.items())
    assert len(set(pairs.values())) == len(pairs) == by_trying_everything(fits)


def test_a_long_chain_of_moves_needs_no_stack() -> None:
    size = 3000
    fits = [[row, row + 1] for row in range(size)] + [[0]]
    assert len(maximum_matching(fits)) == size + 1
