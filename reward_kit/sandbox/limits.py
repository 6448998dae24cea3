"""Limits as the kernel keeps them for a process."""

from __future__ import annotations

import math

from reward_kit.sandbox.contract import Limits

__all__ = ["process_limits"]

_ALL_PROCESSES = 4096


def process_limits(limits: Limits, *, grouped: bool = True) -> dict[str, int]:
    """Names of rlimits to values.

    Where no control group counts for all processes together, memory is bounded for each of them, and processes for all
    sandboxes of a user: the kernel counts those by user.
    """
    bounds = {
        "RLIMIT_CPU": math.ceil(limits.cpu_seconds),
        "RLIMIT_FSIZE": limits.file_size_mb << 20,
        "RLIMIT_NOFILE": max(limits.open_files, 300),  # the session's own descriptors are just below 255
        "RLIMIT_CORE": 0,
    }
    if not grouped:
        bounds |= {"RLIMIT_DATA": limits.memory_mb << 20, "RLIMIT_NPROC": max(limits.processes, _ALL_PROCESSES)}
    return bounds
