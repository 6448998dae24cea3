# SPDX-License-Identifier: Apache-2.0
"""What surrounds the work of a run: somebody who asks it to stop, and what goes on beside it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from reward_kit.execution.stages import Stop

__all__ = ["alongside", "interrupts"]

_UNHEARD_SECONDS = 1.0
"""How long the loop may leave an interruption unheard before the next one ends the run by force."""


@contextlib.asynccontextmanager
async def alongside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something go on in the background while the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.contextmanager
def interrupts(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for a gentle stop; asked twice, the run ends where it stands: KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()
    in_a_hurry = False
    unheard: float | None = None

    def interrupted() -> None:
        nonlocal in_a_hurry, unheard
        unheard = None
        if stop.requested.is_set() and running is not None:
            in_a_hurry = True
            running.cancel()
        stop.request("interrupted")

    def arrived(*_: object) -> None:
        """A handler that runs in the middle of anything: something may block the loop, and then it must do alone."""
        nonlocal unheard
        if unheard is not None and time.monotonic() - unheard > _UNHEARD_SECONDS:
            raise KeyboardInterrupt
        unheard = unheard or time.monotonic()
        loop.call_soon_threadsafe(interrupted)

    previous = {number: signal.signal(number, arrived) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except asyncio.CancelledError:
        if in_a_hurry:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
