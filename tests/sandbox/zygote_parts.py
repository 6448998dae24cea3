"""What the tests of the zygote share."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reward_kit.errors import SandboxError
from reward_kit.sandbox.contract import Limits
from reward_kit.sandbox.zygote import PythonZygote

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


def descendants() -> dict[int, str]:
    """Every living process below this one, with its command."""
    parents: dict[int, tuple[int, str]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (place / "stat").read_text().rpartition(")")
        except OSError:
            continue
        parents[int(place.name)] = (int(rest.split()[1]), name)
    family = {os.getpid(): "self"}
    while more := {pid: name for pid, (parent, name) in parents.items() if parent in family and pid not in family}:
        family |= more
    del family[os.getpid()]
    return family


def control_groups() -> set[str]:
    """The control groups of this process's zygotes."""
    return {str(path) for path in Path("/sys/fs/cgroup").rglob(f"reward-kit-zygote-{os.getpid()}-*") if path.is_dir()}
