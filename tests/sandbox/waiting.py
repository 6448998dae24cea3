# SPDX-License-Identifier: Apache-2.0
"""Waiting for what must come to pass, however busy the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from reward_kit.sandbox.contract import Sandbox

_PATIENCE = 60.0
_TIMES = 20
"""How many times as long as a short command took the last time it may take the next time."""


async def until(comes_true: Callable[[], Awaitable[object]]) -> None:
    """Ask again and again. What never comes true is seen by its never ending."""
    async with asyncio.timeout(_PATIENCE):
        while not await comes_true():
            await asyncio.sleep(0.02)


async def enough_for(short: Callable[[], Awaitable[object]], *, at_least: float = 0.5) -> float:
    """Seconds in which something short is done for sure, by how long it takes now."""
    began = time.monotonic()
    await short()
    return max(at_least, _TIMES * (time.monotonic() - began))


async def enough_to_begin(sandbox: Sandbox, command: str = "true", *, at_least: float = 0.5) -> float:
    """A time limit that a command exceeds only after it has begun, for one that begins as this one does."""
    return await enough_for(lambda: sandbox.run_standalone(command), at_least=at_least)
