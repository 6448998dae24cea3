"""Where a supervisor puts the files of sandboxes together: a directory in memory that only it can see.

<state>/<process>-mounts/devices      what the /dev of all sandboxes share
                         <n>          the root of one sandbox, until it is closed
                         <n>-dev      its /dev
<state>/<process>-<n>                 what is written in it, on disk
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress

from reward_kit.sandbox.devices import make_devices, mount_devices
from reward_kit.sandbox.overlay import MountedRoot
from reward_kit.sandbox.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount, umount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from reward_kit.sandbox.overlay import Lowers

__all__ = ["MountedFiles", "Workshop"]


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

    def make(self, lowers: Lowers, shared_memory: int) -> MountedFiles:
        """Fresh files for one sandbox, over these layers."""
        number = next(self._numbers)
        place = f"{self._mounts}/{number}"
        root = MountedRoot(f"{self._homes}-{number}", place, lowers, as_root=self._as_root)
        files = MountedFiles(root, f"{place}-dev")
        try:
            mount_devices(self._devices, files.devices, shared_memory)
        except OSError:
            files.umount()
            raise
        return files


class MountedFiles:
    """The files of one sandbox."""

    def __init__(self, root: MountedRoot, devices: str) -> None:
        """Its root is mounted; `devices`, where its /dev will be, is made."""
        self.root = root
        self.devices = devices
        os.mkdir(devices)

    def umount(self) -> None:
        """Unmount all of it. What was written stays."""
        with suppress(OSError):  # nothing may have been mounted yet
            umount(self.devices)
        with suppress(OSError):
            os.rmdir(self.devices)
        self.root.umount()
