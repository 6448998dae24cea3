# SPDX-License-Identifier: Apache-2.0
"""Disks of a fixed size: what one sandbox writes lies on a filesystem of its own, in a file behind a loop device.

    file without a name ──▶ loop device ── template copied ──▶ ext4, mounted ──▶ upper layers of a sandbox

The filesystem has as much room and as many inodes as the sandbox may take, so that nothing that is done with files can
take more: not those that were removed and are still open, mapped or on their way through a socket either. Nothing of it
has a name outside the supervisor's mount namespace, and the kernel frees all of it when nobody uses it any more, also
when everybody was killed.

The template is formatted once. Its few blocks are all that is written for one more disk. To free a disk takes the
kernel long, though it works little: a thread does that, and has disks ready before they are needed.

Needs root, mkfs.ext4 and loop devices. Standard library only, and little of it: a supervisor uses it.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import queue
import struct
import threading
from contextlib import suppress

from reward_kit.sandbox.linux.syscalls import MS_NODEV, MS_NOSUID, MS_SILENT, mount, umount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

__all__ = ["Disk", "DiskMaker", "make_template", "most_files"]

_MIB: Final = 1 << 20
_BLOCK: Final = 4096
_INODE: Final = 256
_FILES_PER_MIB: Final = 64
_FEWEST_FILES: Final = 8192
_FEATURES: Final = "^has_journal,^resize_inode,^metadata_csum,uninit_bg"
_OPTIONS: Final = "noinit_itable,nobarrier,nodiscard"
"""What is written need not outlive a crash, and what was never written need not be zeroed."""

_LOOP_CTL_GET_FREE, _LOOP_CONFIGURE = 0x4C82, 0x4C0A
_CONFIGURATION, _FLAGS, _LO_FLAGS_AUTOCLEAR = 304, 60, 4
"""The size of struct loop_config, where in it the flags are, and that the last who closes the device frees it."""
_ATTEMPTS: Final = 64
_AHEAD: Final = 2
_WAITING: Final = 8
"""How many jobs may wait for the thread."""


def most_files(megabytes: int) -> int:
    """How many files, directories and links a sandbox may have that may take so much disk."""
    return max(_FEWEST_FILES, megabytes * _FILES_PER_MIB)


def make_template(path: str, megabytes: int) -> bool:
    """Format a filesystem with so much room in a sparse file. False where that cannot be done here."""
    import shutil
    import subprocess

    program = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        return False
    files = most_files(megabytes)
    # What is the filesystem's own comes on top: inodes, a few blocks, and a fiftieth that it keeps back.
    size = megabytes * _MIB + files * _INODE + min(megabytes // 50, 16) * _MIB + _MIB
    form = ["-b", str(_BLOCK), "-I", str(_INODE), "-N", str(files), "-m", "0", "-O", _FEATURES]
    command = [program, "-q", "-F", *form, "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", path]
    try:
        with open(path, "wb") as file:
            file.truncate(size)
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Disk:
    """One disk, mounted at `path` until it is unmounted, and there until it is closed."""

    def __init__(self, path: str, template: str) -> None:
        """It is mounted; `template` is of what it was made."""
        self.path = path
        self.template = template
        self.descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        """By this it is found when it is mounted no more."""

    def umount(self) -> None:
        """Unmount it, and what is mounted on it. Who has entered it stays there."""
        umount(self.path)
        os.rmdir(self.path)

    def close(self) -> None:
        """Let it go, when the last one who uses it has gone."""
        os.close(self.descriptor)


class DiskMaker:
    """Makes the disks of one supervisor."""

    def __init__(self, images: str, mounts: str) -> None:
        """Keep what is on them in files without a name in `images`, and mount them in `mounts`."""
        self._images = images
        self._mounts = mounts
        self._numbers = itertools.count()
        self._templates: dict[str, tuple[int, list[tuple[int, bytes]]]] = {}
        self._works: bool | None = None
        self._last = ""
        self._ahead: list[Disk] = []
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, template: str) -> Disk | None:
        """A fresh disk; None where none can be had. Where the first cannot be made, no other is tried."""
        if self._works is False or not template:
            return None
        is_wanted_again, self._last = template == self._last, template
        with self._lock:
            others = [disk for disk in self._ahead if disk.template != template]
            self._ahead = [disk for disk in self._ahead if disk.template == template]
            disk = self._ahead.pop(0) if self._ahead else None
        for other in others:
            self.release(other)
        try:
            disk = disk or self._make(template)
            self._works = True
        except OSError:
            self._works = bool(self._works)
            return None
        if is_wanted_again:
            self._do(lambda: self._get_ahead(template))
        return disk

    def release(self, disk: Disk) -> None:
        """Let go of a disk, soon."""

        def free() -> None:
            with suppress(OSError):  # it is mounted no more
                disk.umount()
            disk.close()

        if self._jobs.qsize() < _WAITING:
            self._do(free)
        else:  # they come faster than they go: whoever brings one more waits
            free()

    def _do(self, job: Callable[[], None]) -> None:
        """Started late: who forks must have no other thread, and supervisors do so when they begin."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()

    def _get_ahead(self, template: str) -> None:
        while template == self._last and len(self._ahead) < _AHEAD:
            try:
                disk = self._make(template)
            except OSError:  # then who needs one tries again
                return
            with self._lock:
                self._ahead.append(disk)

    # ── one disk ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _make(self, template: str) -> Disk:
        size, blocks = self._blocks(template)
        image = os.open(self._images, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(image, size)
            number, device = _attach(image)
        finally:
            os.close(image)
        try:
            # Not before: who attaches a file waits until all that is in it is on the real disk.
            for place, block in blocks:
                os.pwrite(device, block, place)
            path = f"{self._mounts}/disk-{next(self._numbers)}"
            os.mkdir(path)
            try:
                mount(f"/dev/loop{number}", path, "ext4", MS_NOSUID | MS_NODEV | MS_SILENT, _OPTIONS)
            except OSError:
                os.rmdir(path)
                raise
        finally:
            os.close(device)  # from here on it is the mount that keeps it
        return Disk(path, template)

    def _blocks(self, template: str) -> tuple[int, list[tuple[int, bytes]]]:
        if template not in self._templates:
            self._templates[template] = _read_blocks(template)
        return self._templates[template]


def _read_blocks(template: str) -> tuple[int, list[tuple[int, bytes]]]:
    """The size of a sparse file, and those of its blocks that are not all zeros."""
    blocks = []
    with open(template, "rb", buffering=0) as file:
        end = 0
        with suppress(OSError):  # beyond the last data
            while True:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
                end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                for place in range(start, end, _BLOCK):
                    block = os.pread(file.fileno(), _BLOCK, place)
                    if any(block):
                        blocks.append((place, block))
        return os.fstat(file.fileno()).st_size, blocks


def _attach(image: int) -> tuple[int, int]:
    """Put a loop device before a file: its number, and a descriptor of it, which is all that keeps it at first."""
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        configuration = bytearray(_CONFIGURATION)
        struct.pack_into("=II", configuration, 0, image, _BLOCK)
        struct.pack_into("=I", configuration, _FLAGS, _LO_FLAGS_AUTOCLEAR)
        for _ in range(_ATTEMPTS):
            number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
            device = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, bytes(configuration))
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # else somebody else was faster
                    raise
            else:
                return number, device
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, "no loop device is free")
