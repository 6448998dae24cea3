# SPDX-License-Identifier: Apache-2.0
"""All results in order, or one error and nobody left at work."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.utils.tasks import together


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
