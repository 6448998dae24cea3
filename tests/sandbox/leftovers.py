# SPDX-License-Identifier: Apache-2.0
"""What the sandboxes of this process could have left here: processes, mounts, groups, directories, loop devices."""

from __future__ import annotations

import os
from pathlib import Path


def leftovers() -> list[str]:
    """Everything of this process's sandboxes that is still there; their names hold its number."""
    name = f"reward-kit-{os.getpid()}-"
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    directories = Path(os.path.expanduser("~"), ".cache", "reward-kit", "sandboxes").glob(f"{name}*")
    return [*_processes(), *mounts, *map(str, directories), *control_groups(name), *loop_devices(name)]


def _processes() -> list[str]:
    """Processes below this one that belong to sandboxes."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.name)] = int(fields[1])
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {process for process, parent in parents.items() if parent in new} - found
        found |= new
    return [text for process in found if "supervisor" in (text := _command(process)) or "bwrap" in text]


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def control_groups(name: str) -> list[str]:
    """Control groups whose names begin so."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(directory, group) for group in names if group.startswith(name)]
    return found


def loop_devices(name: str) -> list[str]:
    """Loop devices in use whose files were in a directory of this name."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = path.read_text().strip()
        except OSError:  # it is not in use any more
            continue
        if name in backing:
            found.append(f"{path.parts[3]} on {backing}")
    return found
