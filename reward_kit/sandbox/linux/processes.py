# SPDX-License-Identifier: Apache-2.0
"""Who is in a sandbox, since when, and how to end them."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Roll",
    "boot_ticks",
    "is_ending",
    "is_gone",
    "kill_in",
    "living_in",
    "most_processes",
    "only_keep_open",
    "processes_below",
    "processes_beside",
    "processes_in",
    "read_in",
    "threads_in",
]

_PATIENCE = 2.0
"""Seconds that those who fork as fast as they are killed are hunted."""
_ALL_PROCESSES = 4096
_COUNTED_BY_NAMESPACE = (5, 14)
"""The first Linux that counts a user's processes in each user namespace by itself."""
_PARENT, _FLAGS, _THREADS, _STARTED = 1, 6, 17, 19
"""Fields of /proc/PID/stat, counted after the name."""
_EXITING = 4
"""PF_EXITING: set before a first process takes the others with it."""
_FORKED = 0x40
"""PF_FORKNOEXEC"""
_STARTING_SECONDS, _STARTING_PAUSE = 0.05, 0.001
_CHUNK = 1 << 16
_HIGHEST_DESCRIPTOR = 1 << 20
_CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
_TICKS = os.sysconf("SC_CLK_TCK")


def boot_ticks() -> int:
    """Now, in the kernel's ticks since boot: the clock that process start times are told in."""
    return int(time.clock_gettime(_CLOCK) * _TICKS)


class Roll:
    """The processes of one sandbox. What it reads is opened at once, so that it works from inside the sandbox, too.

    They are those of a control group (`pids_directory`); else those of a pid namespace, once `look_inside` was called
    there; else all descendants of this process. This process itself is never among them, nor the first of a namespace.

    In a pid namespace they are known by their numbers there, as its own /proc tells them: it lists all and only them,
    and nobody inside can keep out of it. Everywhere else by their numbers here.
    """

    def __init__(self, pids_directory: str | None = None) -> None:
        """Open what will be needed."""
        self.first = 0
        """The first process of the sandbox, with which all others end; 0 where there is none."""
        self.inside = -1
        """The /proc of the sandbox itself, where that is what counts."""
        self._stopped: dict[int, bytes] = {}
        self._own = os.getpid()
        self._proc = _open_if_there("/proc", os.O_RDONLY | os.O_DIRECTORY)
        self._members = self._most = -1
        if pids_directory is not None:
            self._members = os.open(pids_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._most = os.open(f"{pids_directory}/pids.max", os.O_RDWR | os.O_CLOEXEC)

    def look_inside(self) -> None:
        """From here on those count who are in the /proc that is mounted here now."""
        self.inside = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    # ── who ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def directory_of(self, process: int) -> int | None:
        """The directory a process is in now, whatever it is called and whether or not it still has a name."""
        with suppress(OSError):
            return os.open(f"{process}/cwd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._proc)
        return None

    def members(self) -> dict[int, list[bytes]]:
        """Every process in the sandbox, with its fields."""
        if self._members >= 0:
            # Opened again each time: under version 1, one who reads again is told the same again for a second.
            listed = read_in(self._members, "cgroup.procs").split()
            numbers = [int(number) for number in listed if int(number) != self._own]
            return {number: fields for number in numbers if (fields := _stat(self._proc, number))}
        if self.inside >= 0:
            return processes_in(self.inside)
        known = processes_in(self._proc) if self._proc >= 0 else {}
        return {process: fields for process, fields in known.items() if _is_below(process, {self._own}, known)}

    def _number_of(self, child: int) -> int:
        """The number by which `members` knows a child of ours; 0 where it is gone."""
        if self.inside < 0:
            return child
        status = read_in(self._proc, f"{child}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
        return int(status[-1]) if status else 0

    def is_ending(self) -> bool:
        """Whether the first process is going, so that the kernel is killing everybody."""
        return bool(self.first) and _is_ending(_stat(self._proc, self.first))

    # ── ending them ──────────────────────────────────────────────────────────────────────────────────────────────────

    def kill_since(self, since: int, *, spared: set[int], but: int = 0) -> None:
        """Kill everyone who started at `since` or later, and those who fork faster than that, too.

        `spared` are left alone with all that is below them; `but` is left alone by itself.
        """
        if self._most >= 0:
            self._while_nobody_is_born(lambda: self._kill(since, spared, but, signal.SIGKILL))
            return
        spared, but = {self._number_of(child) for child in spared} - {0}, self._number_of(but)
        deadline = time.monotonic() + _PATIENCE
        while self._kill(since, spared, but, signal.SIGKILL) and time.monotonic() < deadline:
            pass

    def stop(self) -> None:
        """Have everyone stand still, once those who are just being started are what they are to be."""
        deadline = time.monotonic() + _STARTING_SECONDS
        while any(_is_starting(fields) for fields in self.members().values()) and time.monotonic() < deadline:
            time.sleep(_STARTING_PAUSE)
        if self._most >= 0:
            self._while_nobody_is_born(self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        """More than once: who was being forked in the first round is seen in the next."""
        deadline = time.monotonic() + _PATIENCE
        while self._kill(0, set(), 0, signal.SIGSTOP) and time.monotonic() < deadline:
            time.sleep(_STARTING_PAUSE)
        self._stopped = {process: self._used(process) for process in self.members()}

    def go_on(self) -> None:
        """Let everyone go on who was stopped; an OSError where one did so before, as by a timer of its own."""
        went_on = [
            process
            for process, fields in self.members().items()
            if process in self._stopped and self._stopped[process] != self._used(process) and not is_gone(fields)
        ]
        self._stopped.clear()
        self._kill(0, set(), 0, signal.SIGCONT)
        if went_on:
            raise OSError(errno.EBUSY, "processes did not stand still", str(went_on))

    def _used(self, process: int) -> bytes:
        """How long a process was at work until now, in nanoseconds, and how often."""
        return read_in(self.inside if self.inside >= 0 else self._proc, f"{process}/schedstat")

    def _while_nobody_is_born(self, work: Callable[[], object]) -> None:
        usual = _read_again(self._most)
        os.write(self._most, b"0")
        try:
            work()
        finally:
            os.write(self._most, usual)

    def _kill(self, since: int, spared: set[int], but: int, by: signal.Signals) -> int:
        members = self.members()
        killed = 0
        for process, fields in members.items():
            if (
                is_gone(fields)
                or (by == signal.SIGSTOP and fields[0] == b"T")
                or process in (but, self._own)
                or int(fields[_STARTED]) < since
                or _is_below(process, spared, members)
            ):
                continue
            with suppress(OSError):
                kill_in(self.inside, process, by) if self.inside >= 0 else os.kill(process, by)
                killed += 1
        return killed


def is_ending(first: int) -> bool:
    """Whether this process, by its number here, is going or gone; if it is the first of a namespace, all with it."""
    try:
        with open(f"/proc/{first}/stat", "rb") as file:
            return _is_ending(file.read().rpartition(b")")[2].split())
    except OSError:
        return True


def _is_ending(fields: list[bytes]) -> bool:
    return not fields or is_gone(fields) or bool(int(fields[_FLAGS]) & _EXITING)


def _is_starting(fields: list[bytes]) -> bool:
    """Whether a process is at work that was forked and is not yet the program it is to be, if it is to be one."""
    return fields[0] in b"RD" and bool(int(fields[_FLAGS]) & _FORKED)


def is_gone(fields: list[bytes]) -> bool:
    """Whether a process has ended. One whose first thread has ended looks so, too, but has others that go on."""
    return fields[0] in b"ZX" and int(fields[_THREADS]) <= 1


def read_in(proc: int, path: str) -> bytes:
    """What a file in this /proc says; nothing where the process is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _stat(proc: int, process: int) -> list[bytes]:
    """The fields of a process after its name, which may hold anything; none where it is gone."""
    return read_in(proc, f"{process}/stat").rpartition(b")")[2].split()


def processes_in(proc: int) -> dict[int, list[bytes]]:
    """Every process but the first in this /proc, with its fields."""
    numbers = [int(name) for name in os.listdir(proc) if name.isdigit()]
    return {number: fields for number in numbers if number != 1 and (fields := _stat(proc, number))}


def living_in(proc: int) -> dict[int, tuple[int, list[bytes]]]:
    """Every process but the first in this /proc that has not ended: a thread of it that goes on, with its fields.

    That is the first thread mostly. Where that has ended, its own fields say that the process has no memory.
    """
    found = {}
    for process, fields in processes_in(proc).items():
        if fields[0] not in b"ZX":
            found[process] = process, fields
        elif not is_gone(fields):
            for thread in threads_in(proc, process):
                status = _stat(proc, thread)
                if status and status[0] not in b"ZX":
                    found[process] = thread, status
                    break
    return found


def threads_in(proc: int, process: int) -> list[int]:
    """The threads of a process in this /proc, by numbers under which it has a directory for each."""
    try:
        directory = os.open(f"{process}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return []
    try:
        return [int(name) for name in os.listdir(directory)]
    except OSError:
        return []
    finally:
        os.close(directory)


def kill_in(proc: int, process: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Kill a process by its number in this /proc, which may be that of a namespace below ours; `by`: another signal."""
    descriptor = os.open(str(process), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    try:
        signal.pidfd_send_signal(descriptor, by)
    finally:
        os.close(descriptor)


def most_processes(wanted: int, *, own_users: bool) -> int:
    """The RLIMIT_NPROC of a sandbox. The kernel counts by user namespace: that of the sandbox, where it has its own.

    Else, and with an older kernel, all the user's processes count, so that only a large number can be bounded.
    """
    release = os.uname().release.replace("-", ".").split(".")
    version = tuple(int(part) for part in release[:2] if part.isdigit())
    return wanted if own_users and version >= _COUNTED_BY_NAMESPACE else max(wanted, _ALL_PROCESSES)


def processes_beside(first: int) -> list[int]:
    """Who is in the pid namespace of the process `first`, it included, by their numbers here."""
    found = []
    with suppress(OSError):
        namespace = os.readlink(f"/proc/{first}/ns/pid")
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if name.isdigit() and os.readlink(f"/proc/{name}/ns/pid") == namespace:
                    found.append(int(name))
    return found


def processes_below(process: int) -> list[int]:
    """A process and its descendants; only itself, where there is no /proc to tell."""
    proc = _open_if_there("/proc", os.O_RDONLY | os.O_DIRECTORY)
    if proc < 0:
        return [process]
    try:
        known = processes_in(proc)
    finally:
        os.close(proc)
    return [each for each in known if _is_below(each, {process}, known)]


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


def only_keep_open(kept: list[int]) -> None:
    """Close every descriptor but these and the standard ones: a forked process has all of its parent's."""
    low = 3
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, _HIGHEST_DESCRIPTOR)
