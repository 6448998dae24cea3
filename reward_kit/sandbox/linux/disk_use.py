# SPDX-License-Identifier: Apache-2.0
"""How much disk files take: those in directories, and those that only a process still holds.

This is for where a sandbox has no disk of a fixed size. Files that are on their way through a socket, and that nobody
has open, are not seen; nor is, for an ordinary user, what is not mapped of a removed file that is only mapped.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DiskUse", "device_of_memory", "held_use", "tree_use"]

_BLOCK = 512
_NAMES_PER_FILE = 8
"""How many names the files of a tree may have, each, for it to be counted."""
_REMOVED = b" (deleted)"
_IN_MEMORY = b"/dev/shm/"


class DiskUse:
    """How many bytes files take, and how many files there are; or how many there may be."""

    def __init__(self, size: int = 0, files: int = 0) -> None:
        """Nothing, unless it is told."""
        self.size = size
        self.files = files

    def __add__(self, other: DiskUse) -> DiskUse:
        return DiskUse(self.size + other.size, self.files + other.files)

    def exceeds(self, most: DiskUse) -> bool:
        """Whether it is more of either."""
        return self.size > most.size or self.files > most.files


def tree_use(directories: Iterable[str], most: DiskUse) -> DiskUse:
    """What is in these directories, or so much of it as is more than `most`.

    A file with several names counts once. A tree that is too deep to be named, or that has names without end, cannot be
    counted, and so counts as too much: else all could be hidden there.
    """
    use = DiskUse()
    linked: set[tuple[int, int]] = set()
    waiting = list(directories)
    names = _NAMES_PER_FILE * most.files
    while waiting and not use.exceeds(most):
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    names -= 1
                    with suppress(FileNotFoundError):
                        _add_entry(entry, use, linked, waiting)
                    if use.files > most.files or names < 0:
                        break
        except OSError as error:  # mostly it has been removed meanwhile
            if error.errno == errno.ENAMETOOLONG:
                names = -1
        if names < 0:
            return DiskUse(most.size + 1, most.files + 1)
    return use


def _add_entry(entry: os.DirEntry[str], use: DiskUse, linked: set[tuple[int, int]], waiting: list[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        waiting.append(entry.path)
    elif found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in linked:
            return
        linked.add((found.st_dev, found.st_ino))
    use.files += 1
    use.size += found.st_blocks * _BLOCK


def held_use(processes: Iterable[int]) -> DiskUse:
    """What is in files that have no name any more, and that these processes have open or mapped.

    Every thread is asked: it may have a table of open files for itself, and outlive the first one of its process.
    """
    sizes: dict[tuple[int, int], int] = {}
    parts: dict[tuple[int, int], set[tuple[int, int]]] = {}
    memory = device_of_memory()
    for process in processes:
        for thread in _names(f"/proc/{process}/task"):
            for name in _names(f"/proc/{thread}/fd"):
                _add_removed(f"/proc/{thread}/fd/{name}", memory, sizes)
        for thread, line in _mapped_and_removed(process):
            _add_mapped(f"/proc/{thread}/map_files", line, memory, sizes, parts)
    open_too = {inode for _, inode in sizes}  # by another name of the device: who maps a file sees what is below it
    mapped = [_length(ranges) for (_, inode), ranges in parts.items() if inode not in open_too]
    return DiskUse(sum(sizes.values()) + sum(mapped), len(sizes) + len(mapped))


def device_of_memory() -> int:
    """What the kernel calls the filesystem of files that were never anywhere but in memory."""
    if not hasattr(os, "memfd_create"):
        return -1
    descriptor = os.memfd_create("device", os.MFD_CLOEXEC)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # it is gone, or does not let itself be looked into
        return []


def _add_removed(path: str, memory: int, sizes: dict[tuple[int, int], int]) -> None:
    with suppress(OSError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_dev != memory:
            sizes[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK


def _mapped_and_removed(process: int) -> Iterator[tuple[str, list[bytes]]]:
    """The lines of a process's maps that are about files without a name, and a thread that still has them."""
    for thread in _names(f"/proc/{process}/task"):
        with suppress(OSError), open(f"/proc/{thread}/maps", "rb") as file:
            lines = file.read().splitlines()
            yield from ((thread, line.split(None, 5)) for line in lines if line.endswith(_REMOVED))
            if lines:
                return


def _add_mapped(
    place: str,
    line: list[bytes],
    memory: int,
    sizes: dict[tuple[int, int], int],
    parts: dict[tuple[int, int], set[tuple[int, int]]],
) -> None:
    """Root is told the size of what is mapped. Another user knows which part of it is."""
    addresses, _, offset, device, inode, path = line
    start, end = (int(number, 16) for number in addresses.split(b"-"))
    number = os.makedev(*(int(part, 16) for part in device.split(b":")))
    if number == memory or path.startswith(_IN_MEMORY):
        return
    try:
        found = os.stat(f"{place}/{start:x}-{end:x}")
    except OSError:
        first = int(offset, 16)
        parts.setdefault((number, int(inode)), set()).add((first, first + end - start))
        return
    if found.st_nlink == 0:
        sizes[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK


def _length(ranges: set[tuple[int, int]]) -> int:
    """How many bytes the ranges cover together; where they overlap, bytes count once."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
