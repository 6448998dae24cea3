# SPDX-License-Identifier: Apache-2.0
"""One run as the supervisor sees it: a process namespace with a program in it, which ends with everything it started.

    Cell: limits and descriptors ─▶ forker ─▶ the program runs ─▶ Watch ─▶ end: nothing of it is left ─▶ Ending

Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.cgroups import MemoryMeter
from reward_kit.sandbox.linux.memory import MemoryWatch
from reward_kit.sandbox.python.messages import WORK, longest

__all__ = [
    "NOBODY",
    "Cell",
    "CellProgram",
    "Everyone",
    "Forker",
    "OwnerGoneError",
    "Patience",
    "ProgramEnd",
    "StarvedError",
    "Watch",
    "file_of",
]

_ENTERED = b"+"
_REPLY_BYTES = 1 << 16
_FIRST_LOOK, _NEVER = 0.02, 3600.0
_CORES = os.cpu_count() or 1
_USED_TICKS, _REAPED_TICKS = slice(11, 13), slice(13, 15)
"""Where a process's `stat` has its time in user mode and in the kernel, and that of children it has waited for."""
_READY = "RD"
"""The states of a process that runs, would run if it could, or waits for a disk."""
_CPU_COUNTED = 0.8
"""The kernel enforces its limit by ticks, and reports time more finely: the two differ on a busy machine."""


class OwnerGoneError(Exception):
    """reward-kit has closed its side: nobody waits for the result."""


class StarvedError(OSError):
    """The machine let a run have so little processor time that nothing can be said of it."""


class ProgramEnd(NamedTuple):
    """How a cell's program ended."""

    exit_code: int | None
    signal: int | None
    oom_killed: bool
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int


class Everyone(NamedTuple):
    """All processes of a cell."""

    cpu_seconds: float
    """What the living have used, and those that they have waited for."""
    reaped_cpu_seconds: float
    """The part of those that they have waited for."""
    others: int
    """How many there are beside its programs."""
    ready: int
    """How many are not asleep."""
    starved_seconds: float = 0.0
    """How long threads of the living were ready to run and got no processor."""


NOBODY = Everyone(0.0, 0.0, 0, 0)
"""What is known of a cell before it has done anything."""


class Forker(NamedTuple):
    """What is needed to start a run."""

    connection: socket.socket
    """To the zygote."""
    meter: MemoryMeter | None
    owner: socket.socket
    """To reward-kit."""


class CellProgram(NamedTuple):
    """One of a cell's programs."""

    streams: Sequence[int]
    """What become its descriptors 0, 1, 2 …"""
    task: bytes


def file_of(content: bytes) -> int:
    """A descriptor to read this content from, at any pace and as often as one likes; nobody can write to it.

    Nothing is no device of the machine either: programs that run at one time could lock parts of it for each other.
    """
    descriptor = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    everything = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, everything)
    return descriptor


class Cell:
    """A program in a process namespace of its own. `end` must be called."""

    def __init__(self, forker: Forker, limits: Mapping[str, Any], *parts: CellProgram) -> None:
        """Start a task, or two that share nothing but their end; `OSError` when one does not become its program.

        The first is the program whose end is the cell's.
        """
        self._forker = forker
        self._cpu_limit = max(1, limits["cpu_seconds"])
        if forker.meter:
            forker.meter.begin(limits["memory_mb"])
        entering, entered = os.pipe()
        answer, descriptors = self._ask(limits, parts, entered)
        if not descriptors:
            os.close(entering)
            raise OSError(_complaint(answer))
        self._namespace, *self._programs = descriptors
        self._memory_bytes = limits["memory_mb"] << 20
        self._memory: MemoryWatch | None = None
        self._proc = -1
        self._kills = 0
        report = b"".join(iter(lambda: os.read(entering, _REPLY_BYTES), b""))
        os.close(entering)
        self._began = time.monotonic()
        if report != _ENTERED * len(parts):
            self._finish()
            problem = report.replace(_ENTERED, b"").decode(errors="replace")
            raise OSError(f"the run could not begin: {problem or 'it was killed'}")

    def _ask(self, limits: Mapping[str, Any], parts: Sequence[CellProgram], entered: int) -> tuple[bytes, list[int]]:
        contents = [file_of(part.task) for part in parts]
        given = [[*part.streams, content, entered] for part, content in zip(parts, contents, strict=True)]
        request = {"limits": limits, "descriptors": [len(each) for each in given]}
        try:
            socket.send_fds(
                self._forker.connection, [json.dumps(request).encode()], [fd for each in given for fd in each]
            )
        finally:
            for descriptor in (*contents, entered):
                os.close(descriptor)
        answer, descriptors, _, _ = socket.recv_fds(self._forker.connection, _REPLY_BYTES, 1 + len(parts))
        return answer, list(descriptors)

    def cpu_seconds(self) -> float:
        """CPU time its first processes have used so far; nothing of those that have ended."""
        return sum(map(_cpu_of, self._clocks))

    def first(self) -> Everyone:
        """Its first processes, with what they have used and waited: cheaper than `everyone`."""
        return NOBODY._replace(cpu_seconds=self.cpu_seconds(), starved_seconds=sum(map(_waited, self._waits)))

    def everyone(self) -> Everyone:
        """All its processes together, as far as they can be seen."""
        seen = [_everyone_in(f"/proc/{pid}/root/proc") for pid in self._pids if pid > 0]
        found = max(seen, default=Everyone(0.0, 0.0, 0, 0))
        return found._replace(others=found.others - 1 - len(self._pids))  # the namespace's first, and the programs

    @functools.cached_property
    def _pids(self) -> list[int]:
        rows = [Path(f"/proc/self/fdinfo/{program}").read_text().splitlines() for program in self._programs]
        return [int(row.split()[1]) for lines in rows for row in lines if row.startswith("Pid:")]

    @functools.cached_property
    def _waits(self) -> list[int]:
        """Descriptors that say how long each has waited for a processor."""
        found: list[int] = []
        for pid in filter(None, self._pids):
            with contextlib.suppress(OSError):
                found.append(os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC))
        return found

    @functools.cached_property
    def _clocks(self) -> list[int]:
        return [syscalls.process_cpu_clock(pid) for pid in self._pids if pid > 0]

    def look_at_memory(self) -> float:
        """Where no control group bounds its memory, see to it; seconds until that should be done again."""
        if self._forker.meter is not None:
            return _NEVER
        if self._memory is None:
            if (early := self._began + _FIRST_LOOK - time.monotonic()) > 0:
                return early  # most runs have ended by then
            self._memory = self._watch_memory()
        else:
            self._memory.look_if_due()
        return self._memory.pause if self._memory and self._memory.pause is not None else _FIRST_LOOK

    def _watch_memory(self) -> MemoryWatch | None:
        """All its programs are in one process namespace; each has writable directories of its own."""
        roots = [f"/proc/{pid}/root" for pid in self._pids if pid > 0]
        try:
            self._proc = os.open(f"{roots[0]}/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, IndexError):  # it has ended
            return None
        stores = tuple(f"{root}{place}" for root in roots for place in ("/tmp", WORK))
        watch = MemoryWatch(self._proc, self._memory_bytes, self._exhausted, stores=stores, has_segments=False)
        watch.begin()
        watch.look()
        return watch

    def _exhausted(self) -> None:
        self._kills += 1

    def killed_for_memory(self) -> bool:
        """Whether one of its processes was, since this was last asked."""
        if self._forker.meter is not None:
            return self._forker.meter.kills() > 0
        kills, self._kills = self._kills, 0
        return kills > 0

    def end(self) -> ProgramEnd:
        """Kill all that is left, and say how its program ended."""
        wall = time.monotonic() - self._began
        answer = self._finish()
        if b"status" not in answer:
            raise OSError(_complaint(answer))
        return self._ending(json.loads(answer), wall, self.killed_for_memory())

    def _finish(self) -> bytes:
        """Kill all that is left; what the zygote says of it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._namespace, signal.SIGKILL)
        answer = self._forker.connection.recv(_REPLY_BYTES)
        for descriptor in (self._namespace, *self._programs, *vars(self).get("_waits", ())):
            os.close(descriptor)
        if self._proc >= 0:
            os.close(self._proc)
        return answer

    def _ending(self, facts: Mapping[str, Any], wall: float, killed: bool) -> ProgramEnd:
        code = os.waitstatus_to_exitcode(facts["status"])
        exit_code, ended_by = (None, -code) if code < 0 else (code, None)
        if ended_by == signal.SIGKILL and not killed and facts["cpu_seconds"] >= self._cpu_limit * _CPU_COUNTED:
            ended_by = int(signal.SIGXCPU)  # it had chosen to ignore that one
        peak = max(facts["largest"], self._forker.meter.peak() if self._forker.meter else 0)
        killed = killed and ended_by == signal.SIGKILL
        return ProgramEnd(exit_code, ended_by, killed, wall, facts["cpu_seconds"], peak)


def _cpu_of(clock: int) -> float:
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0


def _waited(descriptor: int) -> float:
    """How long the thread of a `schedstat` was ready to run and got no processor; the kernel tells nanoseconds."""
    try:
        return int(os.pread(descriptor, 100, 0).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # it has ended, or this kernel does not count it
        return 0.0


def _starved(process: str) -> float:
    """How long all threads of a process have waited."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"{process}/task"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int(Path(f"{process}/task/{thread}/schedstat").read_text().split()[1])
    return total / 1e9


def _everyone_in(proc: str) -> Everyone:
    """The processes that a /proc shows."""
    ticks, of_the_dead, count, ready, starved = 0, 0, 0, 0, 0.0
    with contextlib.suppress(OSError):
        for pid in filter(str.isdecimal, os.listdir(proc)):
            with contextlib.suppress(OSError, ValueError):
                # After the name, which may hold anything: the state, then the fields from the fourth on.
                fields = Path(f"{proc}/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
                own, reaped = (sum(map(int, fields[part])) for part in (_USED_TICKS, _REAPED_TICKS))
                ticks, of_the_dead, count = ticks + own + reaped, of_the_dead + reaped, count + 1
                ready += fields[0] in _READY
                starved += _starved(f"{proc}/{pid}")
    second = os.sysconf("SC_CLK_TCK")
    return Everyone(ticks / second, of_the_dead / second, count, ready, starved)


def _pressure() -> float:
    """The share of the last seconds in which somebody on this machine waited for a processor; 0 where nobody says."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return float(Path("/proc/pressure/cpu").read_text().split("avg10=")[1].split()[0]) / 100
    return 0.0


def _complaint(answer: bytes) -> str:
    """What the zygote said instead of doing it."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(answer)["error"])
    return "the zygote has died"


class Patience:
    """How long a cell is waited for: its processor time and the time it sleeps count, not its waiting for a processor.

    They all count where its own processes had the processors. How long processes that have ended had to wait is not
    known; that is taken to be as long as somebody on the machine did.
    """

    def __init__(self, cell: Cell, seconds: float, before: Everyone = NOBODY) -> None:
        """From now on, `seconds` of its own; `before` is what its processes have done until now."""
        self._cell = cell
        self._began = time.monotonic()
        self._seconds = seconds
        self._before = before
        self.deadline = self._began + seconds

    def is_over(self) -> bool:
        """Whether its time is over; else `deadline` is when to ask again. `StarvedError`: it never got that time."""
        passed = time.monotonic() - self._began
        if passed < self.deadline - self._began:
            return False
        everyone = self._cell.everyone()
        if everyone.cpu_seconds - self._before.cpu_seconds >= self._seconds * _CORES:
            return True
        waited = everyone.starved_seconds - self._before.starved_seconds
        if everyone.ready and everyone.reaped_cpu_seconds > self._before.reaped_cpu_seconds:
            waited = max(waited, passed * _pressure())
        if passed - waited >= self._seconds:
            return True
        if passed >= longest(self._seconds):
            raise StarvedError(f"the machine is too busy: a run of at most {self._seconds:g} s did not get that time")
        self.deadline = self._began + min(self._seconds + waited, longest(self._seconds))
        return False


class Watch:
    """Waits for what a cell and reward-kit do, until a deadline."""

    def __init__(self, forker: Forker, cell: Cell) -> None:
        """Of the forker's present cell."""
        self._cell = cell
        self._done, self._owner = forker.connection.fileno(), forker.owner.fileno()
        self._poll = select.poll()
        self._poll.register(self._done, select.POLLIN)
        self._poll.register(self._owner, 0)

    def also(self, descriptor: int, events: int = select.POLLIN) -> None:
        """Also wake up when this descriptor is ready; where there are no events to wait for, no more."""
        if events:
            self._poll.register(descriptor, events)
        else:
            self.no_more(descriptor)

    def no_more(self, descriptor: int) -> None:
        """Do not wake for this any more."""
        with contextlib.suppress(KeyError):
            self._poll.unregister(descriptor)

    def wait(self, deadline: float) -> dict[int, int]:
        """What is ready, by descriptor; nothing when the time is over."""
        ready: dict[int, int] = {}
        while not ready and (left := deadline - time.monotonic()) > 0:
            ready = dict(self._poll.poll(min(left, self._cell.look_at_memory()) * 1000))
        if self._owner in ready:
            raise OwnerGoneError
        return ready

    def ended(self, ready: Mapping[int, int]) -> bool:
        """Whether the cell's program has ended."""
        return self._done in ready
