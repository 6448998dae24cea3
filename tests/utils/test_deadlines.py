# SPDX-License-Identifier: Apache-2.0
"""A task that stays in a call for too long is cancelled, once, and can tell that from any other cancellation."""

from __future__ import annotations

import asyncio
import contextlib

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


async def stubborn(deadlines: Deadlines, times: int) -> str:
    """A call that takes no notice of being cancelled, so many times."""
    task = asyncio.current_task()
    assert task is not None
    deadlines.begin(task)
    try:
        for _ in range(times):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
        return "done"
    finally:
        deadlines.end(task)


async def test_a_call_that_takes_no_notice_is_cancelled_again() -> None:
    assert await asyncio.create_task(stubborn(Deadlines(0.05), 3)) == "done"


async def test_what_a_call_kept_to_itself_leaves_no_trace() -> None:
    async def both() -> list[str]:
        deadlines = Deadlines(0.05)
        return [await stubborn(deadlines, 1), await timed(deadlines, 30), await timed(deadlines, 0)]

    task = asyncio.create_task(both())
    assert await task == ["done", "late", "done"]
    assert task.cancelling() == 0
