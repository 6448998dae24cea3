"""Where a supervisor puts the files of sandboxes together: a directory in memory that only it can see.

<state>/<process>-mounts/devices      what the /dev of all sandboxes share
                         disk-<m>     the disk of one sandbox, until it is closed: root, dev, and what is written in it
<state>/<process>-<n>                 what a set-up has written, where that is kept

Where no disks of a fixed size can be had:

<state>/<process>-mounts/<n>          the root of one sandbox, until it is closed
                         <n>-dev      its /dev
<state>/<process>-<n>                 what is written in it
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress

from reward_kit.sandbox.linux.loop_disk import Disk, DiskMaker
from reward_kit.sandbox.linux.overlay import MountedRoot
from reward_kit.sandbox.linux.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, umount
from reward_kit.sandbox.local.entering import IGNORED_BY_PYTHON
from reward_kit.sandbox.namespaces.devices import make_devices, mount_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MountedFiles", "Workshop"]

_COPY = 'cp -dR --preserve=mode,ownership,timestamps,links,xattr -- "$@" && printf done'
"""Fails where anything cannot be copied: what has been deleted is told by nodes and attributes, too."""
_COPIED = b"done"
_SOURCE = 3


class Workshop:
    """Mounts what sandboxes see as their files. It is gone with the mount namespace it is made in."""

    def __init__(self, state: str, *, as_root: bool) -> None:
        """`state` is on a real disk: there what is written comes to lie."""
        self._as_root = as_root
        self._homes = f"{state}/{os.getpid()}"
        self._mounts = f"{self._homes}-mounts"
        self._devices = f"{self._mounts}/devices"
        self._numbers = itertools.count()
        os.mkdir(self._mounts)
        mount("tmpfs", self._mounts, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700")
        os.mkdir(self._devices)
        make_devices(self._devices)
        self._disks = DiskMaker(state, self._mounts)

    def make(self, kind: dict[str, Any]) -> MountedFiles:
        """Fresh files for one sandbox: over the layers `lowers`, on a disk like the template `disk` if it can be."""
        number = next(self._numbers)
        home = f"{self._homes}-{number}"
        disk = self._disks.take(kind["disk"])
        if disk is None:
            os.mkdir(home)
            place, devices, written = f"{self._mounts}/{number}", f"{self._mounts}/{number}-dev", home
        else:
            place, devices, written = f"{disk.path}/root", f"{disk.path}/dev", disk.path
        try:
            root = MountedRoot(written, place, kind["lowers"], as_root=self._as_root)
        except OSError:
            if disk is not None:
                self._disks.release(disk)
            raise
        files = MountedFiles(root, devices, home, disk, self._disks)
        try:
            mount_devices(self._devices, files.devices, kind["shared_memory"])
        except OSError:
            files.umount()
            files.release()
            raise
        return files


class MountedFiles:
    """The files of one sandbox."""

    def __init__(self, root: MountedRoot, devices: str, home: str, disk: Disk | None, disks: DiskMaker) -> None:
        """Its root is mounted; `devices`, where its /dev will be, is made."""
        self.root = root
        self.devices = devices
        self.home = "" if disk else home
        """Where its files stay when it is unmounted; nowhere, where they are on a disk of its own."""
        self._kept_home = home
        self._disk = disk
        self._disks = disks
        os.mkdir(devices)

    @property
    def is_bounded(self) -> bool:
        """Whether they are on a disk of their own, and cannot take more than it has."""
        return self._disk is not None

    def umount(self) -> None:
        """Unmount all of it. What was written stays until it is released, or for good where it has a home."""
        if self._disk is not None:
            with suppress(OSError):
                self._disk.umount()
            return
        with suppress(OSError):  # nothing may have been mounted yet
            umount(self.devices)
        with suppress(OSError):
            os.rmdir(self.devices)
        self.root.umount()

    def copy(self) -> int:
        """Begin to copy what was written from its disk to a home. There is something to read here when that is done."""
        assert self._disk is not None
        os.mkdir(self._kept_home)
        self.home = self._kept_home
        result, tell = os.pipe2(os.O_CLOEXEC)
        sources = [f"/proc/self/fd/{_SOURCE}/{os.path.basename(upper)}" for upper in self.root.uppers]
        places = ((self._disk.descriptor, _SOURCE), (tell, 1))
        try:
            os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _COPY, "sh", *sources, self.home],
                {"PATH": os.defpath},
                file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in places],
                setsigdef=IGNORED_BY_PYTHON,
            )
        except OSError:
            os.close(result)
            raise
        finally:
            os.close(tell)
        return result

    @staticmethod
    def is_copied(result: int) -> bool:
        """Whether all of it was."""
        return os.read(result, len(_COPIED)) == _COPIED

    def release(self) -> None:
        """Nobody is in it any more: let go of its disk."""
        if self._disk is not None:
            self._disks.release(self._disk)
            self._disk = None
