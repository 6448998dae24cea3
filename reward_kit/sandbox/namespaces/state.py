# SPDX-License-Identifier: Apache-2.0
"""Where sandboxes keep their files while they live: a directory on a real disk, swept of what the dead left there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import sys
import tempfile
from contextlib import suppress

from reward_kit.errors import SandboxError
from reward_kit.sandbox.linux.remove_tree import remove_tree

__all__ = ["STATE_VARIABLE", "StateDirectory"]

STATE_VARIABLE = "REWARD_KIT_SANDBOX_DIR"
"""The environment variable that says where sandboxes keep their files."""

_UNFIT = frozenset({"overlay", "fuse.fuse-overlayfs", "nfs", "nfs4", "ecryptfs", "aufs", "9p", "virtiofs"})
"""Filesystems that cannot be the upper layer of an overlay."""
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS"""
_TOP_OF_A_HIERARCHY = 0x0002_0000
"""FS_TOPDIR_FL"""
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def _filesystem(path: str) -> str:
    """The kind of filesystem that holds `path`, or will."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    path = os.path.realpath(path)
    best, kind = "", ""
    with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields, _, rest = line.partition(" - ")
            point = fields.split(" ")[4]
            if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                best, kind = point, rest.split(" ")[0]
    return kind


def _candidates() -> list[str]:
    if given := os.environ.get(STATE_VARIABLE):
        return [given]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    mine = f"reward-kit-{os.geteuid()}"
    places = [os.path.join(cache, "reward-kit", "sandboxes")]
    places += [os.path.join(parent, mine) for parent in ("/var/tmp", tempfile.gettempdir())]
    fit = [place for place in places if _filesystem(place) not in _UNFIT]
    return sorted(fit, key=lambda place: _filesystem(place) in _IN_MEMORY)  # what is in memory comes last


class StateDirectory:
    """The directory of one backend. It holds a lock, by which others know that it is in use."""

    def __init__(self, base: str) -> None:
        """Make a new directory under `base`, after removing those whose owners died."""
        os.makedirs(base, mode=0o700, exist_ok=True)
        if os.stat(base).st_uid != os.geteuid():
            raise PermissionError(f"{base!r} belongs to another user")
        self.orphans = _sweep(base)
        """The names of backends that were killed, and whose files have just been removed."""
        self._base = base
        self.name = f"reward-kit-{os.getpid()}-{secrets.token_hex(6)}"
        self._path = os.path.join(base, self.name)
        os.mkdir(self._path, mode=0o700)
        _spread(self._path)
        self._lock = os.open(os.path.join(self._path, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    @classmethod
    def make(cls, given: str | None) -> StateDirectory:
        """The directory in `given`, or in the first place that fits."""
        problems = []
        for base in [given] if given else _candidates():
            try:
                return cls(os.path.abspath(base))
            except OSError as error:
                problems.append(str(error))
        raise SandboxError(
            f"No place for the files of sandboxes: {'; '.join(problems) or 'no fit filesystem'}. "
            f"Set {STATE_VARIABLE} to a directory on a local disk.",
            retryable=False,
        )

    def path(self, *parts: str) -> str:
        """The path of something in this directory, by the parts of its name."""
        return os.path.join(self._path, *parts)

    @property
    def shared(self) -> str:
        """Where root filesystems are kept that every backend of this user may use."""
        return os.path.join(self._base, "roots")

    def image_path(self, archive: str) -> str:
        """Where an archive is unpacked: once for all backends, and again when it changes."""
        found = os.stat(archive) if os.path.exists(archive) else None
        identity = f"{os.path.abspath(archive)} {found and (found.st_size, found.st_mtime_ns)}"
        return os.path.join(self.shared, hashlib.sha256(identity.encode()).hexdigest()[:32])

    def remove(self) -> None:
        """Remove it and everything in it."""
        remove_tree(self._path)
        os.close(self._lock)


def _spread(path: str) -> None:
    """Ask ext4 to place the directories in `path` far from each other.

    It passes over every inode that was freed a moment ago, one by one: where thousands of sandboxes come and go in one
    place, that becomes a tenth of what one costs. Another filesystem may refuse, and has no need.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = bytearray(8)
        fcntl.ioctl(directory, _GET_FLAGS, flags)
        wanted = int.from_bytes(flags[:4], sys.byteorder) | _TOP_OF_A_HIERARCHY
        fcntl.ioctl(directory, _SET_FLAGS, wanted.to_bytes(4, sys.byteorder))
    except OSError:
        pass
    finally:
        os.close(directory)


def _sweep(base: str) -> list[str]:
    """Remove the directories of backends that were killed, and name them. Their mounts went with their supervisors."""
    swept = []
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if not name.startswith("reward-kit-"):
            continue
        with suppress(OSError):
            lock = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(path)
                swept.append(name)
            finally:
                os.close(lock)
    return swept
