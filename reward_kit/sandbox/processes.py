"""Who is in a sandbox, since when, and how to end them."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Roll", "boot_ticks"]

_PASSES = 20
_PARENT, _STARTED = 1, 19
"""Fields of /proc/PID/stat, counted after the name."""
_CHUNK = 1 << 16
_CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_TICKS = os.sysconf("SC_CLK_TCK")


def boot_ticks() -> int:
    """Now, in the kernel's ticks since boot: the clock that process start times are told in."""
    return int(time.clock_gettime(_CLOCK) * _TICKS)


class Roll:
    """The processes of one sandbox. What it reads is opened at once, so that it works from inside the sandbox, too.

    They are those of a control group (`pids_directory`), else those of a pid namespace (`namespace`, as the link names
    it), else all descendants of this process. This process itself is never among them.
    """

    def __init__(self, pids_directory: str | None = None) -> None:
        """Open what will be needed."""
        self.namespace: str | None = None
        self._own = os.getpid()
        self._proc = _open_if_there("/proc", os.O_RDONLY | os.O_DIRECTORY)
        self._members = self._most = -1
        if pids_directory is not None:
            self._members = os.open(f"{pids_directory}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC)
            self._most = os.open(f"{pids_directory}/pids.max", os.O_RDWR | os.O_CLOEXEC)

    # ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def stat(self, process: int) -> list[bytes]:
        """The fields of a process after its name, which may hold anything; none where it is gone."""
        try:
            descriptor = os.open(f"{process}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return []
        try:
            return os.read(descriptor, _CHUNK).rpartition(b")")[2].split()
        except OSError:
            return []
        finally:
            os.close(descriptor)

    def directory_of(self, process: int) -> int | None:
        """The directory a process is in now, whatever it is called and whether or not it still has a name."""
        with suppress(OSError):
            return os.open(f"{process}/cwd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
        return None

    def _everyone(self) -> Iterator[int]:
        if self._proc >= 0:
            yield from (int(name) for name in os.listdir(self._proc) if name.isdigit())

    def members(self) -> dict[int, list[bytes]]:
        """Every process in the sandbox, with its fields."""
        if self._members >= 0:
            numbers = [int(number) for number in _read_again(self._members).split()]
        elif self.namespace is not None:
            numbers = [number for number in self._everyone() if self._namespace_of(number) == self.namespace]
        else:
            return self._descendants()
        return {number: fields for number in numbers if number != self._own and (fields := self.stat(number))}

    def _namespace_of(self, process: int) -> str | None:
        with suppress(OSError):
            return os.readlink(f"{process}/ns/pid", dir_fd=self._proc)
        return None

    def _descendants(self) -> dict[int, list[bytes]]:
        known = {process: fields for process in self._everyone() if (fields := self.stat(process))}
        return {process: fields for process, fields in known.items() if _is_below(process, {self._own}, known)}

    # ── ending them ──────────────────────────────────────────────────────────────────────────────────────────────────

    def kill_since(self, since: int, *, spared: set[int], but: int = 0) -> None:
        """Kill everyone who started at `since` or later, and those who fork faster than that, too.

        `spared` are left alone with all that is below them; `but` is left alone by itself.
        """
        if self._most >= 0:
            self._while_nobody_is_born(lambda: self._kill(since, spared, but))
            return
        for _ in range(_PASSES):
            if not self._kill(since, spared, but):
                return

    def _while_nobody_is_born(self, work: Callable[[], object]) -> None:
        usual = _read_again(self._most)
        os.write(self._most, b"0")
        try:
            work()
        finally:
            os.write(self._most, usual)

    def _kill(self, since: int, spared: set[int], but: int) -> int:
        members = self.members()
        killed = 0
        for process, fields in members.items():
            gone = fields[0] in b"ZX"
            if (
                gone
                or process in (but, self._own)
                or int(fields[_STARTED]) < since
                or _is_below(process, spared, members)
            ):
                continue
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
                killed += 1
        return killed


def _open_if_there(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError:
        return -1


def _read_again(descriptor: int) -> bytes:
    """What a file of the kernel's says now."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)


def _is_below(process: int, ancestors: set[int], known: dict[int, list[bytes]]) -> bool:
    """Whether a process is one of `ancestors`, or a descendant of one."""
    while process not in ancestors:
        fields = known.get(process)
        if fields is None:
            return False
        process = int(fields[_PARENT])
    return True
