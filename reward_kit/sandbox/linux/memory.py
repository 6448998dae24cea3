# SPDX-License-Identifier: Apache-2.0
"""What the processes of a sandbox take of memory together, looked at where no control group bounds it.

An ordinary user mostly has no control groups. Then who starts a sandbox's processes looks at all of them now and then,
and kills the largest when together they have too much, as the kernel would. Between two looks a process can grow by
what it can touch in that time, so each has a limit of its own as well.

Standard library only, and little of it: porters and zygotes use it.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import time
from contextlib import suppress

from reward_kit.sandbox.linux.disk_use import device_of_memory
from reward_kit.sandbox.linux.processes import kill_in, living_in, read_in, threads_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

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
        self._device = device_of_memory()

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
        sockets = _socket_bytes(self._proc, self._most) if self._has_sockets else 0
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


# ── sockets ──────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# What is in the buffers of sockets is no process's memory, and a socket that is on its way through another socket is in
# nobody's table of open files. So the kernel is asked for all sockets of a network namespace, by somebody who is in it.

_SOCK_DIAG: Final = 4
_BY_FAMILY, _DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
_EVERY_STATE: Final = 0xFFFF_FFFF
_NO_COOKIE: Final = b"\xff" * 8
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_UNIX_REQUEST: Final = struct.pack("=BBHIII", socket.AF_UNIX, 0, 0, _EVERY_STATE, 0, 0x20) + _NO_COOKIE
_UNIX_MESSAGE, _UNIX_MEMORY = 16, 5
_INET_MESSAGE, _INET_MEMORY = 72, 7
_INET: Final = tuple(
    (family, protocol)
    for family in (socket.AF_INET, socket.AF_INET6)
    for protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
)
_RECEIVED, _SENDING, _QUEUED, _OPTIONS, _BACKLOG = 0, 2, 5, 6, 7
"""Where in a socket's account of memory these are."""
_CHUNK: Final = 1 << 18
_SECONDS: Final = 1.0
_NONE: Final = 0


def _socket_bytes(proc: int, enough: int) -> int:
    """What the sockets take in the network namespace of this process, up to about `enough`.

    `proc` is a /proc whose first process is in the same one. It says at once where there are no sockets, as mostly.
    """
    first = _read_all(proc, "1/net/sockstat").split()
    if first[:2] != [b"sockets:", b"used"] or int(first[2]) == _NONE:
        return 0
    total = _queues(proc)
    requests = [(_UNIX_REQUEST, _UNIX_MESSAGE, _UNIX_MEMORY)]
    for family, protocol in _INET:
        request = struct.pack("=BBBBI", family, protocol, 1 << (_INET_MEMORY - 1), 0, _EVERY_STATE) + bytes(48)
        requests.append((request, _INET_MESSAGE, _INET_MEMORY))
    for request, skipped, attribute in requests:
        if total > enough:
            break
        with suppress(OSError):  # a kernel that does not tell
            total += _bytes_of_sockets(request, skipped, attribute, enough)
    return total


def _bytes_of_sockets(request: bytes, skipped: int, attribute: int, enough: int) -> int:
    """Ask the kernel for sockets with their memory, which is an attribute behind so many bytes of each answer."""
    total = 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _DUMP, 1, 0) + request)
        while total <= enough:
            data, place = kernel.recv(_CHUNK), 0
            while place < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, place)
                if kind in (_ERROR, _DONE):
                    return total
                total += _memory(data, place + _HEADER.size + skipped, place + length, attribute)
                place += _aligned(length)
    return total


def _memory(data: bytes, place: int, end: int, attribute: int) -> int:
    while place < end:
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        if kind == attribute:
            account = struct.unpack_from(f"={(length - _ATTRIBUTE.size) // 4}I", data, place + _ATTRIBUTE.size)
            sent = max(account[_SENDING], account[_QUEUED])
            return int(account[_RECEIVED] + sent + account[_OPTIONS] + account[_BACKLOG])
        place += _aligned(length)
    return 0


def _aligned(length: int) -> int:
    return max(4, (length + 3) & ~3)


def _queues(proc: int) -> int:
    """What is in sockets of the kinds that are told in text only: raw ones, and those to the kernel itself."""
    total = 0
    for name in ("raw", "raw6"):
        for line in _read_all(proc, f"1/net/{name}").splitlines()[1:]:
            total += sum(int(queue, 16) for queue in line.split()[4].split(b":"))
    for line in _read_all(proc, "1/net/netlink").splitlines()[1:]:
        total += sum(int(queue) for queue in line.split()[4:6])
    return total


def _read_all(proc: int, path: str) -> bytes:
    parts = []
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            while part := os.read(descriptor, _CHUNK):
                parts.append(part)
        finally:
            os.close(descriptor)
    return b"".join(parts)
