# SPDX-License-Identifier: Apache-2.0
"""The devices and links that every sandbox has in its /dev.

The nodes are nobody's but the sandboxes': whoever is root in one and changes the mode of the host's own /dev/null has
changed it for everyone, and programs of two sandboxes could lock parts of it for each other. Where no node may be made,
the host's is shown, read-only. Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat

from reward_kit.sandbox.linux.syscalls import MS_BIND, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["make_devices"]

_NODES: Final = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_NOTHING: Final[Mapping[str, tuple[int, int]]] = {}


def make_devices(directory: str, *, nodes: Mapping[str, tuple[int, int]] = _NOTHING, links: Mapping[str, str]) -> None:
    """Make the usual ones in this empty directory, and further `nodes` (major and minor number) and `links`."""
    for name, (major, minor) in {**_NODES, **nodes}.items():
        path = os.path.join(directory, name)
        try:
            _make_node(path, os.makedev(major, minor))
        except PermissionError:
            _borrow(f"/dev/{name}", path)
    for name, target in {**_LINKS, **links}.items():
        os.symlink(target, os.path.join(directory, name))


def _make_node(path: str, device: int) -> None:
    os.mknod(path, stat.S_IFCHR, device)
    os.chmod(path, 0o666)
    if not _can_be_opened(path):
        os.unlink(path)
        raise PermissionError(errno.EPERM, "devices may be made here, and not used", path)


def _can_be_opened(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError as error:
        return error.errno == errno.ENXIO  # the terminal, which this process does not have
    return True


def _borrow(source: str, path: str) -> None:
    """Show the host's node. Read-only is the node itself, its mode and owner; the device can be written to."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    mount(source, path, "", MS_BIND, "")
    mount("none", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, "")
