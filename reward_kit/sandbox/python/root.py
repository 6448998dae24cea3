# SPDX-License-Identifier: Apache-2.0
"""What a zygote's programs see of the machine: its programs and libraries, read-only, and nothing else.

    /usr /bin /lib …   the machine's            /etc       five small files of our own, and the loader's cache
    the interpreter    its bin and lib          /dev       null zero full random urandom, and links
    /env               the same, of one that    /tmp /box  fresh for each run; /dev/shm is /tmp
                       is under /tmp            /proc      fresh for each run

What is the machine's is seen through an overlay, and files and devices are copied: a lock is on a file as it is seen,
so that programs of two zygotes that run at one time find no locks of each other. Where the kernel permits no overlay or
no device of our own, as for an ordinary user, what is seen is the machine's own.

Standard library only.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reward_kit.sandbox.linux import syscalls
from reward_kit.sandbox.linux.devices import make_devices
from reward_kit.sandbox.python.messages import WORK

__all__ = ["HIDDEN", "enter", "refresh"]

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix")
_ETC = ("ld.so.cache", "localtime", "alternatives")
HIDDEN = ("/tmp", WORK, "/proc", "/dev")
"""What of the machine a program never sees, because it has its own."""
_ELSEWHERE = "/env"
"""Where an interpreter is shown that is in a hidden place, such as a virtual environment under /tmp."""
_PRIVATE = syscalls.MS_NOSUID | syscalls.MS_NODEV
_MIB = 1 << 20
_MOUNT_POINT = 4
"""Which word of a line of /proc/self/mountinfo it is."""


def enter(staging: str, uid: int, packages: Sequence[str]) -> None:
    """Make the root in the empty directory `staging`, in a mount namespace of our own, and move into it for good.

    `packages` are directories of packages beside the interpreter's own; they are shown, and modules are found there.
    """
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE, "")
    syscalls.mount("tmpfs", staging, "tmpfs", syscalls.MS_NOSUID, "mode=755,size=16m")
    root = Path(staging)
    for name in _SYSTEM:
        _show(Path("/") / name, root)
    seen_at = _seen_at(_prefixes())
    for prefix, seen in sorted(seen_at.items()):
        for part in ("bin", "lib", "lib64", "pyvenv.cfg"):  # never all of it, which may be a project's own directory
            _show(Path(prefix) / part, root, Path(seen) / part)
    for path in packages:
        _show(Path(path), root)
    _etc(root, uid)
    _dev(root)
    for name in ("proc", "tmp", WORK[1:]):
        (root / name).mkdir(exist_ok=True)
    syscalls.mount("proc", str(root / "proc"), "proc", _PRIVATE | syscalls.MS_NOEXEC, "")
    syscalls.read_only(staging)
    syscalls.pivot(staging)
    _move_interpreter(seen_at)
    sys.path.extend(path for path in packages if path not in sys.path)


def refresh(uid: int, limits: Mapping[str, Any]) -> None:
    """Lay fresh writable directories and this process namespace's own /proc over a copy of the root."""
    half = min(limits["memory_mb"], limits["disk_mb"]) * _MIB // 2  # for each, so that together they keep both limits
    size = f"size={half},nr_inodes=65536"
    syscalls.mount("tmpfs", "/tmp", "tmpfs", _PRIVATE, f"{size},mode=1777")
    syscalls.mount("tmpfs", WORK, "tmpfs", _PRIVATE, f"{size},mode=700,uid={uid},gid={uid}")
    # Read-only: otherwise a program could offer itself last when memory runs out, by /proc/self/oom_score_adj.
    # Processes only: the rest counts what all programs of the machine have done, those of earlier runs too.
    flags = _PRIVATE | syscalls.MS_NOEXEC | syscalls.MS_RDONLY
    syscalls.mount("proc", "/proc", "proc", flags, "subset=pid")


def _prefixes() -> list[str]:
    """Where the running interpreter is, under each of the names it is known by."""
    return sorted({name for prefix in (sys.base_prefix, sys.prefix) for name in (prefix, os.path.realpath(prefix))})


def _seen_at(prefixes: Sequence[str]) -> dict[str, str]:
    """Where each of them is seen in the sandbox: at its own place, unless a sandbox has that for itself."""
    hidden = [prefix for prefix in prefixes if any(Path(prefix).is_relative_to(place) for place in HIDDEN)]
    return {prefix: f"{_ELSEWHERE}/{hidden.index(prefix)}" if prefix in hidden else prefix for prefix in prefixes}


def _move_interpreter(seen_at: Mapping[str, str]) -> None:
    """Have the running interpreter look for its modules where they are seen now."""

    def moved(path: str) -> str:
        for prefix, seen in seen_at.items():
            if prefix != seen and Path(path).is_relative_to(prefix):
                return seen + path[len(prefix) :]
        return path

    sys.path[:] = map(moved, sys.path)
    for name in ("prefix", "base_prefix", "exec_prefix", "base_exec_prefix", "executable"):
        setattr(sys, name, moved(getattr(sys, name)))
    os.environ["PATH"] = ":".join(map(moved, os.environ["PATH"].split(":")))


def _show(path: Path, root: Path, seen: Path | None = None) -> None:
    """Let `path` be seen under the same name, or as `seen`; a link stays a link."""
    target = root / (seen or path).relative_to("/")
    if not path.exists() or target.exists() or target.is_symlink():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
    else:
        _bind(path, target)


def _bind(path: Path, target: Path) -> None:
    """Let `path` be seen at `target`: by a copy or an overlay, which are our own; else as it is."""
    if path.is_dir():
        target.mkdir()
        if _overlay(path, target):
            return
    elif _copy(path, target):
        return
    else:
        target.touch()
    syscalls.mount(str(path), str(target), "", syscalls.MS_BIND | syscalls.MS_REC, "")


def _overlay(path: Path, target: Path) -> bool:
    """Mount it through an overlay, which needs a second layer; that cannot show what is mounted further down."""
    if any(Path(place).is_relative_to(path) and Path(place) != path for place in _mount_points()):
        return False
    # By descriptors: the names that are given here are shown to all in /proc/self/mounts.
    layers = [os.open(place, os.O_PATH | os.O_DIRECTORY) for place in (path, target)]
    lower = ":".join(f"/proc/self/fd/{layer}" for layer in layers)
    try:
        for options in ("", ",userxattr"):  # which it takes depends on the kernel and on our rights
            with suppress(OSError):
                syscalls.mount("overlay", str(target), "overlay", syscalls.MS_RDONLY, f"lowerdir={lower}{options}")
                return True
    finally:
        for layer in layers:
            os.close(layer)
    return False


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        return [line.split()[_MOUNT_POINT].replace("\\040", " ") for line in lines]


def _copy(path: Path, target: Path) -> bool:
    """Make a small file our own; False where that is not permitted."""
    if path.stat().st_size > _MIB:
        return False
    try:
        shutil.copyfile(path, target)
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def _etc(root: Path, uid: int) -> None:
    etc = root / "etc"
    etc.mkdir()
    (etc / "passwd").write_text(f"root:x:0:0::/:/bin/sh\nuser:x:{uid}:{uid}::{WORK}:/bin/sh\n")
    (etc / "group").write_text(f"root:x:0:\nuser:x:{uid}:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost sandbox\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    for name in _ETC:
        _show(Path("/etc") / name, root)


def _dev(root: Path) -> None:
    dev = root / "dev"
    dev.mkdir()
    make_devices(str(dev), links={"shm": "/tmp"})
