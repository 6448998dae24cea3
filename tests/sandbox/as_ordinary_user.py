# SPDX-License-Identifier: Apache-2.0
"""Run by root: `python as_ordinary_user.py UID ROOT PROGRAM …` runs a program as somebody with no rights.

An interpreter and a checkout are often below a directory that is closed to others, such as /root. In a mount namespace
of its own such a directory is covered by an empty one that is open, and only what is needed is put back into it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[2])

from reward_kit.sandbox.linux.syscalls import CLONE_NEWNS, mount, unshare

_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 1 << 18


def _closed_above(path: Path) -> Path | None:
    """The uppermost directory on the way to `path` that others may not go through."""
    for parent in [*reversed(path.parents), path]:
        if not parent.stat().st_mode & stat.S_IXOTH:
            return parent
    return None


def _open_to_all(paths: set[Path]) -> None:
    closed = {path: cover for path in sorted(paths) if (cover := _closed_above(path))}
    held = {path: os.open(path, os.O_PATH) for path in closed}
    for cover in sorted(set(closed.values())):
        mount("tmpfs", str(cover), "tmpfs", 0, "mode=755")
    for path, descriptor in held.items():
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", str(path), "", _BIND | _RECURSIVE, "")


def main() -> None:
    """Open what is needed, give up every right, and be the program."""
    user = int(sys.argv[1])
    unshare(CLONE_NEWNS)
    mount("none", "/", "", _RECURSIVE | _PRIVATE, "")
    needed = {Path(place) for place in (sys.argv[2], sys.prefix, sys.base_prefix)}
    _open_to_all(needed | {path.resolve() for path in needed})
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execv(sys.argv[3], sys.argv[3:])


main()
