# SPDX-License-Identifier: Apache-2.0
"""A loop that is held up is noticed from beside it, with who does it and where."""

from __future__ import annotations

import asyncio
import threading

from reward_kit.scoring.loop_watch import Blockage, LoopWatch

PATIENCE = 0.05


async def test_a_task_that_blocks_is_named_with_its_place_and_once() -> None:
    told: list[Blockage] = []
    noticed = threading.Event()

    def tell(blockage: Blockage) -> None:
        told.append(blockage)
        noticed.set()

    async def block() -> None:
        assert noticed.wait(30)
        assert not threading.Event().wait(PATIENCE * 3), "time enough to be told of twice"

    with LoopWatch(PATIENCE, tell):
        blocking = asyncio.create_task(block())
        await blocking
    (blockage,) = told
    assert blockage.task is blocking
    assert blockage.seconds > PATIENCE
    assert "test_loop_watch.py, line" in blockage.place


async def test_a_loop_that_waits_is_not_held_up() -> None:
    told: list[Blockage] = []
    with LoopWatch(5.0, told.append):
        await asyncio.sleep(0.01)
    assert not told
    assert not [thread for thread in threading.enumerate() if "loop watch" in thread.name]
