"""Items go from givers to takers, each once, in order; makers wait while too many are on their way."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.execution.handover import Handover, Item


def item(number: int) -> Item:
    return Item([], str(number))


async def take_all(handover: Handover) -> list[str]:
    taken = []
    while (got := await handover.take()) is not None:
        taken.append(got.content)
        await asyncio.sleep(0)
    return taken


async def test_every_item_is_taken_once() -> None:
    handover = Handover(10)
    takers = [asyncio.create_task(take_all(handover)) for _ in range(7)]
    for number in range(100):
        handover.give(item(number))
        if number % 3 == 0:
            await asyncio.sleep(0)
    handover.end()
    taken = [content for taker in takers for content in await taker]
    assert sorted(taken, key=int) == [str(number) for number in range(100)]


async def test_makers_wait_until_half_is_taken() -> None:
    handover = Handover(4)
    for number in range(4):
        handover.give(item(number))
    room = asyncio.create_task(handover.room())
    await asyncio.sleep(0)
    assert not room.done()
    for _ in range(2):
        await handover.take()
    await asyncio.wait_for(room, 1)


async def test_an_item_is_not_lost_with_a_taker_that_was_woken_and_cancelled() -> None:
    handover = Handover(4)
    first, second = (asyncio.create_task(handover.take()) for _ in range(2))
    await asyncio.sleep(0)
    handover.give(item(1))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    got = await asyncio.wait_for(second, 1)
    assert got is not None
    assert got.content == "1"


async def test_the_end_reaches_everybody() -> None:
    handover = Handover(4)
    takers = [asyncio.create_task(handover.take()) for _ in range(5)]
    await asyncio.sleep(0)
    handover.end()
    assert await asyncio.gather(*takers) == [None] * 5
    assert await handover.take() is None
