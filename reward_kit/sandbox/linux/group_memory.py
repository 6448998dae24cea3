"""A control group that bounds the memory of one zygote's programs, where the machine lets us make one.

Made and removed by reward-kit, joined by the zygote's programs, and measured by its supervisor. The group
is kept from run to run, for each one that is removed lingers in the kernel. Standard library only.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from reward_kit.sandbox.linux.cgroups import find_hierarchy

__all__ = ["MemoryMeter", "make_group", "remove_group"]

_REMOVAL_ATTEMPTS = 100
_SEARCH = threading.Lock()


def make_group(name: str) -> str | None:
    """A new group, without swap; None where none with a memory limit can be made."""
    with _SEARCH:  # looking for it makes groups to try, which two at a time would stumble over
        hierarchy = find_hierarchy()
    if hierarchy is None:
        return None
    version_1 = hierarchy.version == 1
    group = Path(hierarchy.parents["memory" if version_1 else ""], name)
    try:
        group.mkdir()
        (group / ("memory.swappiness" if version_1 else "memory.swap.max")).write_text("0")
    except FileNotFoundError:  # a kernel that does not count swap
        return str(group)
    except OSError:
        remove_group(str(group))
        return None
    return str(group)


def remove_group(group: str) -> None:
    """Remove it; its last processes may take a moment to go."""
    for _ in range(_REMOVAL_ATTEMPTS):
        try:
            Path(group).rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return


def _open_resettable(path: Path) -> int | None:
    """The file of the peak; None where it cannot be reset, which version 2 allows since Linux 6.12."""
    try:
        return os.open(path, os.O_RDWR)
    except OSError:
        return None


class MemoryMeter:
    """The supervisor's side of the group: limits it, and reads what the programs in it used."""

    def __init__(self, group: str) -> None:
        """Open the files of a group."""
        first = Path(group, "memory.limit_in_bytes").exists()
        names = ["limit_in_bytes", "oom_control", "usage_in_bytes", "max_usage_in_bytes"]
        limit, events, usage, peak = [
            Path(group, f"memory.{name}") for name in (names if first else ["max", "events", "current", "peak"])
        ]
        self._limit = os.open(limit, os.O_WRONLY)
        self._events = os.open(events, os.O_RDONLY)
        self._usage = os.open(usage, os.O_RDONLY)
        self._peak = _open_resettable(peak)
        self._megabytes = 0
        self._before = 0
        self._kills = self._counted()

    def begin(self, megabytes: int) -> None:
        """Set the limit of the run that begins, and forget the last one's peak."""
        if megabytes != self._megabytes:
            os.pwrite(self._limit, b"%d" % (megabytes << 20), 0)
            self._megabytes = megabytes
        if self._peak is not None:
            os.pwrite(self._peak, b"0", 0)
            self._before = int(os.pread(self._usage, 64, 0))

    def kills(self) -> int:
        """How many processes were killed for their memory since this was last asked."""
        before, self._kills = self._kills, self._counted()
        return self._kills - before

    def peak(self) -> int:
        """The most memory that this run's processes used together, without what caches held before; 0 if not known."""
        return 0 if self._peak is None else max(0, int(os.pread(self._peak, 64, 0)) - self._before)

    def _counted(self) -> int:
        rows = dict(line.split() for line in os.pread(self._events, 4096, 0).decode().splitlines())
        return int(rows.get("oom_kill", 0))
