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

__all__ = ["DiskUse", "held_use", "tree_use"]

_BLOCK = 512
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

    A tree that is too deep to be named cannot be counted, and so counts as too much: else all could be hidden there.
    """
    use = DiskUse()
    waiting = list(directories)
    while waiting and not use.exceeds(most):
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    use.files += 1
                    with suppress(FileNotFoundError):
                        use.size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    if use.files > most.files:
                        break
        except OSError as error:  # mostly it has been removed meanwhile
            if error.errno == errno.ENAMETOOLONG:
                return DiskUse(most.size + 1, use.files)
    return use


def held_use(processes: Iterable[int]) -> DiskUse:
    """What is in files that have no name any more, and that these processes have open or mapped.

    Every thread is asked: it may have a table of open files for itself, and outlive the first one of its process.
    """
    sizes: dict[tuple[int, int], int] = {}
    parts: dict[tuple[int, int], set[tuple[int, int]]] = {}
    memory = _device_of_memory()
    for process in processes:
        for thread in _names(f"/proc/{process}/task"):
            for name in _names(f"/proc/{thread}/fd"):
                _add_removed(f"/proc/{thread}/fd/{name}", memory, sizes)
        for thread, line in _mapped_and_removed(process):
            _add_mapped(f"/proc/{thread}/map_files", line, memory, sizes, parts)
    for file, ranges in parts.items():
        if file not in sizes:
            sizes[file] = _length(ranges)
    return DiskUse(sum(sizes.values()), len(sizes))


def _device_of_memory() -> int:
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
    """What they cover together."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
