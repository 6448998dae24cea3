# SPDX-License-Identifier: Apache-2.0
"""Limits as the kernel keeps them for a process."""

from __future__ import annotations

import math

from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.linux.disk_use import DiskUse
from reward_kit.sandbox.linux.loop_disk import most_files
from reward_kit.sandbox.linux.processes import most_processes

__all__ = ["most_use", "process_limits"]

_BURST = 4
"""How many times the memory of a sandbox one of its processes may have, where no control group bounds it."""


def process_limits(limits: Limits, *, grouped: bool = True, own_users: bool = False) -> dict[str, int]:
    """Names of rlimits to values.

    Where no control group counts for all processes together, each gets more memory than the sandbox may have: somebody
    looks at what they take together and ends them (`memory.py`), and this is for those who are too fast to be seen.
    `own_users`: the sandbox has a user namespace of its own, by which processes are counted.
    """
    bounds = {
        "RLIMIT_CPU": math.ceil(limits.cpu_seconds),
        "RLIMIT_FSIZE": limits.file_size_mb << 20,
        "RLIMIT_NOFILE": max(limits.open_files, 300),  # the session's own descriptors are just below 255
        "RLIMIT_CORE": 0,
    }
    if not grouped:
        bounds["RLIMIT_DATA"] = _BURST * limits.memory_mb << 20
        bounds["RLIMIT_NPROC"] = most_processes(limits.processes, own_users=own_users)
    return bounds


def most_use(limits: Limits) -> DiskUse:
    """What all files together may take."""
    return DiskUse(limits.disk_mb << 20, most_files(limits.disk_mb))
