"""What the processes of a sandbox take of memory together, looked at where no control group bounds it.

An ordinary user mostly has no control groups. Then who starts a sandbox's processes looks at all of them now and then,
and kills the largest when together they have too much, as the kernel would. Between two looks a process can grow by
what it can touch in that time, so each has a limit of its own as well.

Standard library only, and little of it: porters and zygotes use it.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from reward_kit.sandbox.linux.processes import kill_in, living_in, read_in, threads_in
from reward_kit.sandbox.linux.socket_memory import socket_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MemoryWatch"]

_USER_TICKS, _SYSTEM_TICKS, _RESIDENT = 11, 12, 21
"""Fields of /proc/PID/stat, counted after the name."""
_SHORTEST, _LONGEST = 0.02, 0.2
_SHARE = 20
"""Looking takes at most one part in so many of the time, unless the longest pause comes first."""
_DYING_SECONDS = 1.0
"""How long a killed process may take to go before another is killed."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512
_KIB = 1024
_THE_SHELL = 1


class MemoryWatch:
    """Watches the processes of one sandbox. Whoever waits for them calls `look_if_due` after every `pause`."""

    def __init__(
        self,
        proc: int,
        most: int,
        exceeded: Callable[[], None],
        *,
        stores: tuple[str, ...],
        has_segments: bool,
        has_sockets: bool = False,
    ) -> None:
        """Let all processes but the first in this /proc have `most` bytes; call `exceeded` before one is killed.

        `stores` are directories whose files are in memory; `has_segments`: System V shared memory is what we see of it;
        `has_sockets`: so are the sockets of our network namespace.
        """
        self._proc = proc
        self._most = most
        self._exceeded = exceeded
        self._stores = stores
        self._has_segments = has_segments
        self._has_sockets = has_sockets
        self._turns = 0
        self._ticks = -1
        self._victim, self._patience = 0, 0.0
        self._looked = time.monotonic()
        self._pause: float | None = _SHORTEST
        self._device = _device_of_memory()

    def begin(self) -> None:
        """A command begins: look often."""
        self._turns += 1
        self._pause = _SHORTEST

    def end(self) -> None:
        """A command has ended; what it left may still be at work."""
        self._turns -= 1

    @property
    def pause(self) -> float | None:
        """Seconds until the next look; None where nothing moves, so that memory cannot grow."""
        return self._pause

    def look_if_due(self) -> None:
        """Look, unless that was done just now: those who wait are woken for other reasons, too."""
        if self._pause is not None and time.monotonic() - self._looked >= self._pause:
            self.look()

    def look(self) -> None:
        """Look once, and kill the largest process where all together have too much."""
        self._looked = time.monotonic()
        began = time.process_time()
        found = living_in(self._proc)
        ticks = sum(int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS]) for _, fields in found.values())
        resident = sum(int(fields[_RESIDENT]) for _, fields in found.values()) * _PAGE
        threads = {process: thread for process, (thread, _) in found.items()}
        stored = self._stored(list(found))
        sockets = socket_bytes(self._proc, self._most) if self._has_sockets else 0
        is_dying = self._victim in found and self._looked < self._patience
        is_much = resident + stored + sockets > self._most
        if is_much and not is_dying and self._kill_largest(threads, stored, sockets):
            self._pause = _SHORTEST  # there may be another
            return
        is_still = ticks == self._ticks
        self._ticks = ticks
        self._pause = self._next_pause(is_still, len(found), time.process_time() - began)

    def _next_pause(self, is_still: bool, processes: int, took: float) -> float | None:
        if is_still and not self._turns and processes <= _THE_SHELL:
            return None
        longer = 2 * (self._pause or _SHORTEST) if is_still else _SHORTEST
        return min(max(longer, _SHARE * took), _LONGEST)

    def _stored(self, processes: list[int]) -> int:
        """Files in memory, open ones that have no name included."""
        total = _open_memory(self._proc, processes, self._device)
        total += _segments(self._proc) if self._has_segments else 0
        for store in self._stores:
            with suppress(OSError):
                found = os.statvfs(store)
                total += (found.f_blocks - found.f_bfree) * found.f_frsize
        return total

    def _kill_largest(self, threads: dict[int, int], stored: int, sockets: int) -> bool:
        """Look closely: what processes share counts once. Whether one was killed.

        `threads` says for each process which of its threads can be asked.
        """
        own, shared = {}, 0
        for process, thread in threads.items():
            own[process], part = _taken(self._proc, thread)
            shared += part
        # What is in a store may also be mapped.
        if not own or sum(own.values()) + max(shared, stored) + sockets <= self._most:
            return False
        self._exceeded()
        self._victim, self._patience = max(own, key=lambda process: own[process]), self._looked + _DYING_SECONDS
        with suppress(OSError):
            kill_in(self._proc, self._victim)
        return True


def _taken(proc: int, process: int) -> tuple[int, int]:
    """A process's part of memory of its own, and of memory that is made to be shared."""
    rows = {}
    for line in read_in(proc, f"{process}/smaps_rollup").splitlines():
        name, _, rest = line.partition(b":")
        if name.startswith((b"Pss", b"SwapPss")):
            rows[name] = int(rest.split()[0]) * _KIB
    if b"Pss_Anon" in rows:
        return rows[b"Pss_Anon"] + rows.get(b"SwapPss", 0), rows[b"Pss_Shmem"]
    pages = read_in(proc, f"{process}/statm").split()  # it does not let itself be looked into, or is of an old kernel
    return ((int(pages[1]) - int(pages[2])) * _PAGE, 0) if pages else (0, 0)


def _device_of_memory() -> int:
    """What the kernel calls the filesystem of files that were never anywhere but in memory."""
    descriptor = os.memfd_create("device", os.MFD_CLOEXEC)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _open_memory(proc: int, processes: list[int], device: int) -> int:
    """What is in files that were never anywhere but in memory, and that these processes have open.

    Every thread is asked: it may have a table of open files for itself.
    """
    sizes = {}
    for thread in (thread for process in processes for thread in threads_in(proc, process)):
        with suppress(OSError):
            directory = os.open(f"{thread}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
            try:
                for name in os.listdir(directory):
                    with suppress(OSError):
                        found = os.stat(name, dir_fd=directory)
                        if found.st_dev == device and stat.S_ISREG(found.st_mode):
                            sizes[found.st_ino] = found.st_blocks * _BLOCK
            finally:
                os.close(directory)
    return sum(sizes.values())


def _segments(proc: int) -> int:
    """System V shared memory, which stays when nobody has it mapped."""
    return sum(int(line.split()[-2]) for line in read_in(proc, "sysvipc/shm").splitlines()[1:])
