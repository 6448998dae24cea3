# SPDX-License-Identifier: Apache-2.0
"""All results in order, or one error and nobody left at work."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.utils.tasks import abandonable, together


async def test_results_come_in_order_whoever_is_first() -> None:
    async def late(number: int) -> int:
        for _ in range(5 - number):
            await asyncio.sleep(0)
        return number

    assert await together(late(number) for number in range(5)) == [0, 1, 2, 3, 4]
    assert await together([]) == []


async def test_when_one_fails_the_others_are_ended_before_its_error_is_told() -> None:
    ended: list[str] = []

    async def endless(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await together([endless("a"), failing(), endless("b")])
    assert sorted(ended) == ["a", "b"]


async def test_whoever_gives_up_waiting_leaves_nobody_at_work() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(together([endless()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def stubborn(heard: list[str]) -> None:
    while len(heard) < 4:  # two cancellations, being closed, and being thrown away, which no test should hear of
        try:
            await asyncio.sleep(30)
        except BaseException as error:  # noqa: BLE001 - what a loop that tries again and again does
            heard.append(type(error).__name__)


async def test_work_that_keeps_each_cancellation_to_itself_ends_where_it_is_given_up() -> None:
    heard: list[str] = []

    async def wait() -> None:
        await abandonable(stubborn(heard), lambda: len(heard) > 1)

    task = asyncio.create_task(wait())
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert heard[:2] == ["CancelledError"] * 2


async def test_work_that_is_not_given_up_goes_on_as_it_would() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await asyncio.gather(fail())
        return "done"

    async def fail() -> None:
        raise ZeroDivisionError

    async def wait() -> str:
        return await abandonable(work(), lambda: False)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done"
