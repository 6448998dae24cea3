"""How much disk a sandbox takes, looked at for as long as anything in it can write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from reward_kit.sandbox.linux.disk_use import DiskUse

__all__ = ["DiskGuard"]

_PAUSE = 0.25
"""Seconds. Less can hardly be enough to write more than a sandbox may hold."""
_SHARE = 1
"""A pause is at least so many times as long as the look before it. No look takes long: it ends at the limits."""


class DiskGuard:
    """Watches one sandbox: from soon after a command begins until none runs and nobody is left in it but its shell."""

    def __init__(
        self,
        measure: Callable[[DiskUse], Awaitable[DiskUse]],
        most: DiskUse,
        exceeded: Callable[[], None],
        is_quiet: Callable[[], bool],
    ) -> None:
        """Call `exceeded` whenever the sandbox is found to take more than `most`.

        `measure` tells what it takes, and may stop counting at what it is given. `is_quiet` tells whether only the
        shell is left.
        """
        self._measure = measure
        self._most = most
        self._exceeded = exceeded
        self._is_quiet = is_quiet
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    def begin(self) -> None:
        """A command begins."""
        self._running += 1
        if self._timer is None and self._looking is None:
            # Not one per command: a command can be shorter than setting a timer for it.
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._look)

    def end(self) -> None:
        """It has ended. What it has started may still be at work."""
        self._running -= 1

    def close(self) -> None:
        """Nothing more will run."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _look(self) -> None:
        self._timer = None
        if not self._is_closed:
            self._looking = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        try:
            await self._keep_looking()
        finally:
            self._looking = None  # at once: a command that begins now has to be watched again

    async def _keep_looking(self) -> None:
        while True:
            began = time.monotonic()
            # Asked first: whoever is there by then is seen by this look, and nobody else can come.
            is_over = not self._running and await asyncio.to_thread(self._is_quiet)
            if (await self._measure(self._most)).exceeds(self._most):
                self._exceeded()
            if is_over and not self._running:
                return
            await asyncio.sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))
