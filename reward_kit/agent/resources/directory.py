# SPDX-License-Identifier: Apache-2.0
"""A `FileTree` as a real directory, for tools that need one, and back. No link in the directory is ever followed."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from reward_kit.agent.resources.file_tree import File, FileTree, Link

__all__ = ["Seen", "read_directory", "update_directory", "write_directory"]

_IN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SETTLED = 2_000_000_000
"""Nanoseconds after which a file that was changed again has another time of change for sure."""


class Seen(NamedTuple):
    """A file as it was when it was last read; as long as its status is the same, so is its content."""

    status: tuple[int, ...]
    file: File


def read_directory(root: Path, most_bytes: int, seen: dict[str, Seen]) -> FileTree:
    """What is in `root`. Files that `seen` knows unchanged are not read again; `seen` is brought up to date.

    A link that leads out of `root` is a ValueError, and so is anything else that is no file and no directory.
    """
    tree = FileTree(most_bytes)
    links: list[tuple[str, str]] = []
    known, now = dict(seen), _now(root)
    seen.clear()
    waiting = [""]
    while waiting:
        above = waiting.pop()
        folder = _open_below(root, above)
        try:
            for name in sorted(os.listdir(folder)):
                path = f"{above}/{name}" if above else name
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    tree.make_dir(path)
                    waiting.append(path)
                elif stat.S_ISLNK(status.st_mode):
                    links.append((path, os.readlink(name, dir_fd=folder)))
                elif stat.S_ISREG(status.st_mode):
                    file = _read(folder, name, status, known.get(path))
                    tree.write(path, file.content, executable=file.executable)
                    if now - status.st_ctime_ns > _SETTLED:
                        seen[path] = Seen(_status(status), file)
                else:
                    raise ValueError(f"{path!r} is not a file, directory or link; remove it first")
        finally:
            os.close(folder)
    for path, target in links:
        tree.link(path, target)
    return tree


def write_directory(root: Path, tree: FileTree) -> None:
    """Write a tree to a new directory, which nobody knows of yet: so nothing in it can be a link but what we make."""
    root.mkdir(mode=0o700)
    for path, entry in tree.items():
        if entry is None:
            (root / path).mkdir()
        elif isinstance(entry, Link):
            os.symlink(entry.target, root / path)
        else:
            handle = os.open(root / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            try:
                remaining = memoryview(entry.content)
                while remaining:
                    remaining = remaining[os.write(handle, remaining) :]
                os.fchmod(handle, 0o755 if entry.executable else 0o644)
            finally:
                os.close(handle)


def update_directory(root: Path, before: FileTree, after: FileTree) -> None:
    """Make `root`, which holds `before`, hold `after`."""
    old, new = before.entries(), after.entries()
    for path in sorted(old, reverse=True):
        if path not in new or (type(old[path]) is not type(new[path])):
            _remove(root, path)
    for path, entry in sorted(new.items()):
        if path in old and old[path] == entry:
            continue
        parent, _, name = path.rpartition("/")
        with ExitStack() as stack:
            folder = _open_below(root, parent)
            stack.callback(os.close, folder)
            if entry is None:
                os.mkdir(name, 0o755, dir_fd=folder)
            elif isinstance(entry, Link):
                if path in old:
                    os.unlink(name, dir_fd=folder)
                os.symlink(entry.target, name, dir_fd=folder)
            else:
                _write(folder, name, entry)


def _now(root: Path) -> int:
    """The time of the file system itself, by a file that is made beside `root`."""
    mark = root.with_name(f"{root.name}.now")
    mark.write_bytes(b"")
    try:
        return mark.stat().st_ctime_ns
    finally:
        mark.unlink()


def _open_below(root: Path, path: str) -> int:
    """A directory in `root`, opened name by name, so that none of them is a link. The caller closes it."""
    folder = os.open(root, _IN)
    for name in path.split("/") if path else []:
        try:
            below = os.open(name, _IN, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _status(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)


def _read(folder: int, name: str, status: os.stat_result, known: Seen | None) -> File:
    if known is not None and known.status == _status(status):
        return known.file
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(handle, "rb") as opened:
        return File(opened.read(), bool(status.st_mode & 0o100))


def _write(folder: int, name: str, file: File) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o644, dir_fd=folder)
    with open(handle, "wb") as opened:
        opened.write(file.content)
        os.fchmod(handle, 0o755 if file.executable else 0o644)


def _remove(root: Path, path: str) -> None:
    parent, _, name = path.rpartition("/")
    try:
        folder = _open_below(root, parent)
    except FileNotFoundError:
        return
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    finally:
        os.close(folder)
