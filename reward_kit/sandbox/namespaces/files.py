# SPDX-License-Identifier: Apache-2.0
"""The files of sandboxes, as a supervisor mounts them: for each a root of its own over shared layers, and a /dev.

<state>/<process>-mounts/devices      what the /dev of all sandboxes share
                         disk-<m>     the disk of one sandbox, until it is closed: root, dev, and what is written in it
<state>/<process>-<n>                 what a setup has written, where that is kept

Where no disks of a fixed size can be had:

<state>/<process>-mounts/<n>          the root of one sandbox, until it is closed
                         <n>-dev      its /dev
<state>/<process>-<n>                 what is written in it

All of it but `<state>` is seen only in the supervisor's mount namespace.
"""

from __future__ import annotations

import itertools
import os
import stat
from contextlib import suppress

from reward_kit.sandbox.linux.devices import make_devices
from reward_kit.sandbox.linux.loop_disk import Disk, DiskMaker
from reward_kit.sandbox.linux.remove_tree import remove_tree
from reward_kit.sandbox.linux.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    umount,
)
from reward_kit.sandbox.local.porter import IGNORED_BY_PYTHON
from reward_kit.sandbox.trust import TRUSTED_PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Lowers = list[tuple[str, list[str]]]

__all__ = ["MountedFiles", "Workshop", "remove_home", "upper_directories"]

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
        _make_shared_devices(self._devices)
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
            root = _MountedRoot(written, place, kind["lowers"], as_root=self._as_root)
        except OSError:
            if disk is not None:
                self._disks.release(disk)
            raise
        files = MountedFiles(root, devices, home, disk, self._disks)
        try:
            _mount_devices(self._devices, files.devices, kind["shared_memory"])
        except OSError:
            files.umount()
            files.release()
            raise
        return files


class MountedFiles:
    """The files of one sandbox."""

    def __init__(self, root: _MountedRoot, devices: str, home: str, disk: Disk | None, disks: DiskMaker) -> None:
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

    def written(self) -> list[str]:
        """Where what is written is found, also when it is mounted here no more."""
        if self._disk is None:
            return self.root.uppers
        return [f"/proc/self/fd/{self._disk.descriptor}/{os.path.basename(upper)}" for upper in self.root.uppers]

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


# ── the root ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def upper_directories(home: str, count: int) -> list[str]:
    """Where a root of `count` overlays takes what is written, in the order of the overlays."""
    return [os.path.join(home, f"upper-{number}") for number in range(count)]


class _MountedRoot:
    """The root of one sandbox: an overlay, and further ones on directories in it.

    `lowers` says for each where in the root it is (the first is the root itself: "") and what it shows: directories
    that are only read, the uppermost first.
    """

    def __init__(self, home: str, path: str, lowers: Lowers, *, as_root: bool) -> None:
        """Mount the root at `path`, which is made. What is written comes to lie in the empty directory `home`."""
        self.home = home
        self.path = path
        self.uppers = upper_directories(home, len(lowers))
        self._as_root = as_root
        os.mkdir(path)
        try:
            for number, (place, layers) in enumerate(lowers):
                self._mount(number, path + place, layers)
        except OSError:
            self.umount()
            raise

    def _mount(self, number: int, target: str, layers: list[str]) -> None:
        """Nothing is synced to disk for it: a sandbox does not outlive its process.

        The layers are named by descriptors: whoever is inside can read the names in /proc/mounts.
        """
        upper, work = self.uppers[number], os.path.join(self.home, f"work-{number}")
        os.mkdir(upper)
        os.mkdir(work)
        os.chmod(upper, stat.S_IMODE(os.stat(layers[0]).st_mode))
        places: list[int] = []
        try:
            for path in (upper, work, *layers):
                places.append(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            names = [f"/proc/self/fd/{place}" for place in places]
            options = f"lowerdir={':'.join(names[2:])},upperdir={names[0]},workdir={names[1]},volatile"
            mount("overlay", target, "overlay", 0, options if self._as_root else f"{options},userxattr")
        finally:
            for place in places:
                os.close(place)

    def umount(self) -> None:
        """Unmount all of it. The files stay."""
        with suppress(OSError):  # nothing may have been mounted yet
            umount(self.path)
        with suppress(OSError):
            os.rmdir(self.path)


_LEFT_BY_OVERLAY = ("work/incompat/volatile/dirty", "work/incompat/volatile", "work/incompat", "work", "")
"""What a closed sandbox mostly leaves of an overlay's work directory, which nobody inside can reach."""


def remove_home(home: str) -> None:
    """Remove what a sandbox has left. Most of it is known by its name, and need not be looked for."""
    with suppress(OSError):  # there are no more, or their modes have to be changed first
        for number in itertools.count():
            work = f"{home}/work-{number}/"
            os.unlink(work + _LEFT_BY_OVERLAY[0])
            for name in _LEFT_BY_OVERLAY[1:]:
                os.rmdir(work + name)
    remove_tree(home)


# ── /dev ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Made once and only read from then on, so that one more sandbox costs three mounts. `pts` and `shm` are empty in what
# all share, and covered in each sandbox by its own.


def _make_shared_devices(directory: str) -> None:
    """Make what all sandboxes share in this empty directory, and let nobody write there any more."""
    mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k")
    make_devices(directory, nodes={"tty": (5, 0)}, links={"core": "/proc/kcore", "ptmx": "pts/ptmx"})
    for name in ("pts", "shm", os.path.basename(TRUSTED_PROGRAMS)):
        os.mkdir(os.path.join(directory, name))
    mount("tmpfs", directory, "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, "")


def _mount_devices(directory: str, target: str, shared_memory: int) -> None:
    """Show at `target` what was made in `directory`, with terminals and shared memory that only one sandbox has.

    Files in memory outlive the process that is killed for them, so they may take `shared_memory` bytes only.
    """
    mount(directory, target, "", MS_BIND | MS_REC, "")
    mount("devpts", f"{target}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    mount("tmpfs", f"{target}/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={shared_memory}")
