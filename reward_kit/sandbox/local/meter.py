# SPDX-License-Identifier: Apache-2.0
"""What a sandbox uses, read from the control group that bounds it: CPU time, peak memory, kills for want of memory."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple, Protocol

from reward_kit.sandbox.linux.cgroups import Accounts, ProcessGroup
from reward_kit.sandbox.local.porter_client import PorterClient

__all__ = ["GroupMeter", "Meter", "MeterReading", "NoMeter", "TurnMeter"]


class MeterReading(NamedTuple):
    """What has been used since the sandbox was opened, but for the peak, which is since the reading before."""

    cpu_seconds: float | None
    peak_memory_bytes: int | None
    oom_kills: int


class Meter(Protocol):
    """Reads what one sandbox uses."""

    last: MeterReading | None
    """What was read last; None before anything was, or where nobody counts."""

    def read(self) -> MeterReading | None:
        """What has been used by now."""
        ...

    def close(self) -> None:
        """There is nothing more to read."""
        ...


class NoMeter:
    """A meter for sandboxes whose use nobody counts."""

    last: MeterReading | None = None

    def read(self) -> MeterReading | None:
        """None, which means that nothing is known of what the command used."""
        return None

    def close(self) -> None:
        """Does nothing: no file is open."""


class TurnMeter:
    """Where a porter watches memory while commands run: it knows of kills, and of nothing else."""

    def __init__(self, porter: PorterClient) -> None:
        """There has been nothing yet."""
        self._porter = porter
        self.last: MeterReading | None = None

    def begin(self) -> None:
        """Tell the porter that a command begins, and note how often memory has run out so far."""
        self._porter.begin_turn()
        self.last = self._reading()

    def read(self) -> MeterReading | None:
        """Tell the porter that the command has ended, and return what it has counted by now."""
        self._porter.end_turn()
        return self._reading()

    def _reading(self) -> MeterReading:
        return MeterReading(None, None, self._porter.exhaustions)

    def close(self) -> None:
        """Does nothing: no file is open."""


class GroupMeter:
    """Reads the accounts of a control group."""

    def __init__(self, group: ProcessGroup) -> None:
        """The group has to be there by now."""
        self._accounts: Accounts | None = None
        self.last: MeterReading | None = None
        with suppress(OSError):  # it is being closed
            self._accounts = group.accounts()
        self.read()

    def read(self) -> MeterReading | None:
        """What has been used by now; the peak begins anew."""
        if self._accounts is None:
            return None
        try:
            cpu, peak = self._accounts.cpu_seconds(), self._accounts.peak_bytes()
            self.last = MeterReading(cpu, peak, self._accounts.memory_kills())
            self._accounts.reset_peak()
        except OSError:  # it is being closed
            return None
        return self.last

    def close(self) -> None:
        """Close the files of the control group's accounts."""
        if self._accounts is not None:
            self._accounts.close()
            self._accounts = None
