"""How much disk a sandbox takes, looked at while a command runs long enough to take much."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

__all__ = ["DiskGuard", "disk_bytes"]

_FIRST_LOOK = 0.25
"""Seconds. Less can hardly be enough to write more than a sandbox may hold."""
_SHARE = 10
"""Looking takes at most one part in so many of the time."""
_BLOCK = 512


def disk_bytes(directories: Iterable[str], processes: Iterable[int], enough: int) -> int:
    """What is in these directories and in files that these processes have open without a name, up to about `enough`."""
    total = sum(_held(process) for process in processes)
    waiting = list(directories)
    while waiting and total <= enough:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    return total


def _held(process: int) -> int:
    """The size of files that are open in a process and have been removed."""
    total = 0
    with suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                found = os.stat(f"/proc/{process}/fd/{name}")
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    total += found.st_blocks * _BLOCK
    return total


class DiskGuard:
    """Watches one sandbox."""

    def __init__(
        self,
        directories: Callable[[], list[str]],
        most: int,
        processes: Callable[[], list[int]],
        exceeded: Callable[[], None],
    ) -> None:
        """Call `exceeded` whenever the sandbox is found to take more than `most` bytes."""
        self._directories = directories
        self._most = most
        self._processes = processes
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
            taken = await asyncio.to_thread(disk_bytes, self._directories(), self._processes(), self._most)
            if taken > self._most:
                self._exceeded()
            await asyncio.sleep(max(_FIRST_LOOK, _SHARE * (time.monotonic() - began)))
