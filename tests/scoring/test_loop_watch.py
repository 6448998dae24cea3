# SPDX-License-Identifier: Apache-2.0
"""A loop that is held up is noticed from beside it, with who does it and where."""

from __future__ import annotations

import asyncio
import threading

from reward_kit.scoring.loop_watch import Blockage, LoopWatch

PATIENCE = 0.05


async def test_a_task_that_blocks_is_named_with_its_place_and_once() -> None:
    blockages: list[Blockage] = []
    noticed = threading.Event()

    def notice(blockage: Blockage) -> None:
        # A busy machine may stop this whole process for longer than the patience, in whoever's turn it is.
        if blockage.task is blocking:
            blockages.append(blockage)
            noticed.set()

    async def block() -> None:
        while not noticed.wait(5):  # such a stop was noticed in this turn of the loop, so this is not: in the next one
            await asyncio.sleep(PATIENCE)
        assert not threading.Event().wait(PATIENCE * 3), "time enough to be noticed twice"

    with LoopWatch(PATIENCE, notice):
        blocking = asyncio.create_task(block())
        await blocking
    (blockage,) = blockages
    assert blockage.seconds > PATIENCE
    assert "test_loop_watch.py, line" in blockage.place


async def test_a_loop_that_waits_is_not_held_up() -> None:
    told: list[Blockage] = []
    with LoopWatch(5.0, told.append):
        await asyncio.sleep(0.01)
    assert not told
    assert not [thread for thread in threading.enumerate() if "loop watch" in thread.name]
