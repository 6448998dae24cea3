# SPDX-License-Identifier: Apache-2.0
"""Items go from givers to takers, each once, in order; makers wait while too many are on their way."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.execution.owed import Work
from reward_kit.execution.queues import Handover, Item, WorkQueue
from reward_kit.models import Sample


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
    await asyncio.wait_for(room, 60)


async def test_an_item_is_not_lost_with_a_taker_that_was_woken_and_cancelled() -> None:
    handover = Handover(4)
    first, second = (asyncio.create_task(handover.take()) for _ in range(2))
    await asyncio.sleep(0)
    handover.give(item(1))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    got = await asyncio.wait_for(second, 60)
    assert got is not None
    assert got.content == "1"


async def test_the_end_reaches_everybody() -> None:
    handover = Handover(4)
    takers = [asyncio.create_task(handover.take()) for _ in range(5)]
    await asyncio.sleep(0)
    handover.end()
    assert await asyncio.gather(*takers) == [None] * 5
    assert await handover.take() is None


async def test_as_many_takers_work_at_once_as_there_are_items() -> None:
    handover, busy, all_busy = Handover(100), 0, asyncio.Event()

    async def work() -> None:
        nonlocal busy
        while await handover.take() is not None:
            busy += 1
            if busy == 50:
                all_busy.set()
            await all_busy.wait()

    takers = [asyncio.create_task(work()) for _ in range(50)]
    await asyncio.sleep(0)
    for number in range(50):
        handover.give(item(number))
    handover.end()
    await asyncio.wait_for(asyncio.gather(*takers), 60)


async def test_items_keep_flowing_after_takers_were_cancelled_on_their_way() -> None:
    handover = Handover(100)
    for number in range(20):
        doomed = asyncio.create_task(handover.take())
        await asyncio.sleep(0)
        handover.give(item(number))
        doomed.cancel()
        await asyncio.wait([doomed])
        left = await handover.take()
        assert left is not None
        assert left.content == str(number)
    waiting = asyncio.create_task(handover.take())
    await asyncio.sleep(0)
    handover.give(item(20))
    last = await asyncio.wait_for(waiting, 60)
    assert last is not None
    assert last.content == "20"


async def test_draws_that_need_requests_of_their_own_are_handed_out_apart() -> None:
    """So that each is on disk as soon as it comes, and a kill costs no finished sibling."""
    works = [Work(Sample(id=name, messages=[]), "", draws=[0, 1, 2]) for name in "ab"]
    most = iter([3, 2])
    queue = WorkQueue(iter(works), at_once=lambda: next(most))
    taken = []
    while (work := await queue.take()) is not None:
        taken.append((work.sample.id, work.draws))
        if len(taken) == 3:
            break
    assert taken == [("a", [0, 1, 2]), ("b", [0, 1]), ("b", [2])]
