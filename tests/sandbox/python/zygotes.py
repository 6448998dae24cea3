# SPDX-License-Identifier: Apache-2.0
"""What the tests of the zygote share."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.python.pool import PythonZygote

LIMITS = Limits(memory_mb=128, processes=24, timeout=20.0, cpu_seconds=10.0, file_size_mb=8, output_bytes=1 << 16)


@asynccontextmanager
async def working_zygotes(size: int = 1, python: str | None = None) -> AsyncIterator[PythonZygote]:
    """Started zygotes; the test is skipped where the kernel does not permit them."""
    zygotes = PythonZygote(size=size, limits=LIMITS, python=python)
    try:
        try:
            await zygotes.start()
        except SandboxError as error:
            if "Operation not permitted" not in str(error):
                raise
            pytest.skip(str(error))
        yield zygotes
    finally:
        await zygotes.close()


BEFORE: set[int] = set()
"""Processes below this one that were there before the test: other tests' workers, which stay for the next."""


def descendants() -> dict[int, str]:
    """Every living process below this one that the test has brought about, with its command."""
    return {process: name for process, name in family().items() if process not in BEFORE}


def family() -> dict[int, str]:
    """Every living process below this one, with its command."""
    parents: dict[int, tuple[int, str]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (place / "stat").read_text().rpartition(")")
        except OSError:
            continue
        parents[int(place.name)] = (int(rest.split()[1]), name)
    found = {os.getpid(): "self"}
    while more := {pid: name for pid, (parent, name) in parents.items() if parent in found and pid not in found}:
        found |= more
    del found[os.getpid()]
    return found


def control_groups(owner: int | str | None = None) -> set[str]:
    """The control groups of the zygotes of a process (of this one, unless it is named; of all, for "*").

    By `os.walk`, which passes over what goes while it looks: other tests make and remove groups all the time.
    """
    prefix = "reward-kit-zygote-" if owner == "*" else f"reward-kit-zygote-{owner or os.getpid()}-"
    found = os.walk("/sys/fs/cgroup")
    return {os.path.join(place, name) for place, names, _ in found for name in names if name.startswith(prefix)}
