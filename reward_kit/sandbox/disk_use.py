"""How much disk files take: those in directories, and those that only a process still holds."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["disk_bytes", "held_bytes"]

_BLOCK = 512


def disk_bytes(directories: Iterable[str], enough: int) -> int:
    """What is in these directories, up to about `enough`."""
    total = 0
    waiting = list(directories)
    while waiting and total <= enough:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    return total


def held_bytes(processes: Iterable[int]) -> int:
    """What is in files that these processes have open and that have no name any more."""
    total = 0
    for process in processes:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    found = os.stat(f"/proc/{process}/fd/{name}")
                    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                        total += found.st_blocks * _BLOCK
    return total
