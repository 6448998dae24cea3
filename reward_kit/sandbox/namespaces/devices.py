"""The /dev of sandboxes: made once and only read from then on, so that one more sandbox costs three mounts.

    null zero full random urandom tty      nodes of our own; where they may not be made, the host's, read-only
    fd stdin stdout stderr core ptmx       links
    pts shm                                empty, and covered in each sandbox by its own

The nodes are nobody's but ours: whoever is root in a sandbox and changes the mode of the host's own /dev/null has
changed it for everyone.
"""

from __future__ import annotations

import os
import stat

from reward_kit.sandbox.linux.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["make_devices", "mount_devices"]

_NODES: Final = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "core": "/proc/kcore",
    "ptmx": "pts/ptmx",
}


def make_devices(directory: str) -> None:
    """Make what all sandboxes share in this empty directory, and let nobody write there any more."""
    mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k")
    for name, (major, minor) in _NODES.items():
        path = os.path.join(directory, name)
        try:
            os.mknod(path, stat.S_IFCHR, os.makedev(major, minor))
            os.chmod(path, 0o666)
        except PermissionError:
            _borrow(f"/dev/{name}", path)
    for name, target in _LINKS.items():
        os.symlink(target, os.path.join(directory, name))
    for name in ("pts", "shm"):
        os.mkdir(os.path.join(directory, name))
    mount("tmpfs", directory, "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, "")


def _borrow(source: str, path: str) -> None:
    """Show the host's node. Read-only is the node itself, its mode and owner; the device can be written to."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    mount(source, path, "", MS_BIND, "")
    mount("none", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, "")


def mount_devices(directory: str, target: str, shared_memory: int) -> None:
    """Show at `target` what was made in `directory`, with terminals and shared memory that only one sandbox has.

    Files in memory outlive the process that is killed for them, so they may take `shared_memory` bytes only.
    """
    mount(directory, target, "", MS_BIND | MS_REC, "")
    mount("devpts", f"{target}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    mount("tmpfs", f"{target}/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={shared_memory}")
