"""What a sandbox uses, read from the control group that bounds it: CPU time, peak memory, kills for want of memory."""

from __future__ import annotations

import os
from typing import NamedTuple, Protocol

from reward_kit.sandbox.linux.cgroups import ProcessGroup
from reward_kit.sandbox.local.porter_client import Portal

__all__ = ["GroupMeter", "Meter", "NoMeter", "Reading", "TurnMeter"]


class Reading(NamedTuple):
    """What has been used since the sandbox was opened, but for the peak, which is since the reading before."""

    cpu_seconds: float | None
    peak_memory_bytes: int | None
    oom_kills: int


class Meter(Protocol):
    """Reads what one sandbox uses."""

    last: Reading | None
    """What was read last; None before anything was, or where nobody counts."""

    def read(self) -> Reading | None:
        """What has been used by now."""
        ...

    def close(self) -> None:
        """There is nothing more to read."""
        ...


class NoMeter:
    """Where nobody counts."""

    last: Reading | None = None

    def read(self) -> Reading | None:
        """Nothing is known."""
        return None

    def close(self) -> None:
        """Nothing is open."""


class TurnMeter:
    """Where a porter watches memory while commands run: it knows of kills, and of nothing else."""

    def __init__(self, portal: Portal) -> None:
        """There has been nothing yet."""
        self._portal = portal
        self.last: Reading | None = None

    def begin(self) -> None:
        """A command begins."""
        self._portal.begin_turn()
        self.last = self._reading()

    def read(self) -> Reading | None:
        """It has ended."""
        self._portal.end_turn()
        return self._reading()

    def _reading(self) -> Reading:
        return Reading(None, None, self._portal.exhaustions)

    def close(self) -> None:
        """Nothing is open."""


class GroupMeter:
    """Reads the accounts of a control group. They are kept open: a command can be shorter than opening a file."""

    def __init__(self, group: ProcessGroup) -> None:
        """The group has to be there by now."""
        self._files: list[int] = []
        self.last: Reading | None = None
        try:
            self._files = [_open(path) for path in group.accounts]
        except OSError:  # it is being closed
            return
        self._is_plain = group.accounts[0].endswith("usage")
        self.read()

    def read(self) -> Reading | None:
        """What has been used by now; the peak begins anew."""
        if not self._files:
            return None
        try:
            cpu, peak, events = (os.pread(file, 4096, 0) if file >= 0 else b"" for file in self._files)
            if peak:
                self._reset_peak()
        except OSError:  # it is being closed
            return None
        seconds = int(cpu) / 1e9 if self._is_plain else _field(cpu, b"usage_usec") / 1e6
        self.last = Reading(seconds, int(peak) if peak else None, _field(events, b"oom_kill"))
        return self.last

    def _reset_peak(self) -> None:
        try:
            os.pwrite(self._files[1], b"0", 0)
        except OSError:  # a kernel that cannot: from now on the peak is not told, rather than told wrongly
            os.close(self._files[1])
            self._files[1] = -1

    def close(self) -> None:
        """Close the accounts."""
        for file in self._files:
            if file >= 0:
                os.close(file)
        self._files = []


def _open(path: str) -> int:
    """An account; -1 for one that this kernel does not keep."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(path)):
            return -1
        raise


def _field(text: bytes, name: bytes) -> int:
    start = text.find(name + b" ")
    return int(text[start + len(name) :].split(None, 1)[0]) if start >= 0 else 0
