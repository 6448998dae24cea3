"""A task that stays in a call for too long is cancelled, once, and can tell that from any other cancellation."""

from __future__ import annotations

import asyncio

import pytest

from reward_kit.utils.deadlines import Deadlines


async def timed(deadlines: Deadlines, seconds: float) -> str:
    task = asyncio.current_task()
    assert task is not None
    deadlines.begin(task)
    try:
        await asyncio.sleep(seconds)
        return "done"
    except asyncio.CancelledError:
        if deadlines.was_missed_by(task):
            return "late"
        raise
    finally:
        deadlines.end(task)


async def test_only_the_slow_are_cancelled() -> None:
    deadlines = Deadlines(0.1)
    assert await asyncio.gather(*(timed(deadlines, seconds) for seconds in (0, 30, 0.01, 30))) == [
        "done", "late", "done", "late",
    ]  # fmt: skip
    assert await timed(deadlines, 30) == "late", "it goes on looking after a while without calls"


async def test_a_task_that_was_late_is_not_cancelled_afterwards() -> None:
    async def twice() -> list[str]:
        return [await timed(Deadlines(0.05), 30), await timed(Deadlines(5), 0.1)]

    assert await asyncio.create_task(twice()) == ["late", "done"]


async def test_another_cancellation_is_passed_on() -> None:
    task = asyncio.create_task(timed(Deadlines(30), 30))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
