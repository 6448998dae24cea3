"""How much disk a sandbox takes, looked at while a command runs long enough to take much."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

__all__ = ["DiskGuard"]

_FIRST_LOOK = 0.25
"""Seconds. Less can hardly be enough to write more than a sandbox may hold."""
_SHARE = 10
"""Looking takes at most one part in so many of the time."""


class DiskGuard:
    """Watches one sandbox."""

    def __init__(self, measure: Callable[[int], Awaitable[int]], most: int, exceeded: Callable[[], None]) -> None:
        """Call `exceeded` whenever the sandbox is found to take more than `most` bytes.

        `measure` tells how many it takes, and may stop counting at those it is given.
        """
        self._measure = measure
        self._most = most
        self._exceeded = exceeded
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        self._looking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """A command begins: while it runs, look now and then; at once where short ones have gone unwatched."""
        self._running += 1
        if self._is_due:
            self._look()
        elif self._timer is None and self._looking is None:
            # Not one a command: a command can be shorter than setting a timer for it.
            self._timer = asyncio.get_running_loop().call_later(_FIRST_LOOK, self._look)

    def end(self) -> None:
        """It has ended."""
        self._running -= 1
        if not self._running and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def close(self) -> None:
        """Nothing more will run."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        self._is_due = not self._running
        if self._running and self._looking is None:
            self._looking = asyncio.ensure_future(self._keep_looking())

    async def _keep_looking(self) -> None:
        while True:
            began = time.monotonic()
            if await self._measure(self._most) > self._most:
                self._exceeded()
            await asyncio.sleep(max(_FIRST_LOOK, _SHARE * (time.monotonic() - began)))
