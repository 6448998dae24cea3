# SPDX-License-Identifier: Apache-2.0
"""What is added in a turn is dealt with once, at its end; without a loop, at once. Errors reach whoever comes next."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.utils import batcher as module
from reward_kit.utils.batcher import Batcher


def test_without_a_loop_it_is_done_at_once() -> None:
    dealt: list[list[int]] = []
    batcher = Batcher[int](dealt.append)
    batcher.add(1)
    batcher.add(2)
    assert dealt == [[1], [2]]


async def test_in_a_loop_it_is_done_once_a_turn() -> None:
    dealt: list[list[int]] = []
    batcher = Batcher[int](dealt.append)
    for turn in range(3):
        for number in range(5):
            batcher.add(number)
        assert len(dealt) == turn
        await asyncio.sleep(0)
    assert dealt == [[0, 1, 2, 3, 4]] * 3


async def test_a_long_turn_is_dealt_with_in_parts() -> None:
    dealt: list[list[int]] = []
    batcher = Batcher[int](dealt.append)
    for number in range(3 * module._MOST_WAITING + 1):
        batcher.add(number)
    assert list(map(len, dealt)) == [module._MOST_WAITING] * 3
    await batcher.dealt()
    assert [number for batch in dealt for number in batch] == list(range(3 * module._MOST_WAITING + 1))


async def test_dealing_may_add_more() -> None:
    dealt: list[list[int]] = []

    def deal(numbers: list[int]) -> None:
        dealt.append(numbers)
        if len(dealt) < 3:
            batcher.add(len(dealt))

    batcher = Batcher[int](deal)
    batcher.add(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert dealt == [[0], [1], [2]]


async def test_whoever_waits_comes_back_when_its_thing_was_dealt_with() -> None:
    """However many others add meanwhile."""
    dealt: set[int] = set()
    batcher = Batcher[int](dealt.update)

    async def add(number: int) -> None:
        for again in range(5):
            mine = 10 * number + again
            batcher.add(mine)
            await batcher.dealt()
            assert mine in dealt

    await asyncio.gather(*map(add, range(20)))


async def test_nobody_waits_where_there_is_nothing() -> None:
    batcher = Batcher[int](lambda _: None)
    await batcher.dealt()


async def test_an_error_reaches_who_waits_and_who_comes_next() -> None:
    def fail(_: list[int]) -> None:
        raise OSError("full")

    batcher = Batcher[int](fail)
    batcher.add(1)
    with pytest.raises(OSError, match="full"):
        await batcher.dealt()
    with pytest.raises(OSError, match="full"):
        batcher.add(2)
    with pytest.raises(OSError, match="full"):
        batcher.flush()


async def test_an_error_in_the_middle_of_a_turn_reaches_those_who_added_before() -> None:
    def fail(_: list[int]) -> None:
        raise OSError("full")

    batcher = Batcher[int](fail)

    async def add() -> None:
        batcher.add(1)
        await batcher.dealt()

    adding = [asyncio.ensure_future(add()) for _ in range(module._MOST_WAITING)]
    found = await asyncio.gather(*adding, return_exceptions=True)
    assert {str(error) for error in found} == {"full"}
