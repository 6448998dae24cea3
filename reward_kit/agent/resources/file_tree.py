# SPDX-License-Identifier: Apache-2.0
"""A directory as a value: names, contents and links, in memory.

Contents are never changed, only replaced, so a copy of a tree shares them with the tree it was made from: a thousand
files are copied in the time of copying a dict. A path is looked up in the tree and nowhere else, so none can lead out
of it, whatever links it passes; one that tries is a ValueError.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["File", "FileTree", "Link"]

_MOST_LINKS = 40
_LONGEST_NAME = 255
_MOST_ENTRIES = 100_000


class File(NamedTuple):
    """A file."""

    content: bytes
    executable: bool = False


class Link(NamedTuple):
    """A symbolic link, which leads to a place in the tree."""

    target: str


_Entry = File | Link | None
"""None: a directory."""


class FileTree:
    """Files, directories and links under one root. Paths are relative to it, with `/` between names."""

    def __init__(self, most_bytes: int) -> None:
        """An empty tree, which may come to hold `most_bytes` of contents."""
        self.most_bytes = most_bytes
        self._entries: dict[str, _Entry] = {}
        self._size = 0

    def copy(self) -> FileTree:
        """A tree of its own with the same files."""
        copied = FileTree(self.most_bytes)
        copied._entries, copied._size = self._entries.copy(), self._size
        return copied

    def items(self) -> Iterator[tuple[str, _Entry]]:
        """Every path with what is there, a directory before what is in it."""
        return iter(sorted(self._entries.items()))

    def entries(self) -> dict[str, _Entry]:
        """The same as a dict of its own."""
        return self._entries.copy()

    def resolve(self, path: str) -> str:
        """The name that `path` has once its links are followed; '' for the root. What leads out is a ValueError."""
        waiting = _parts(path)[::-1]
        found: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not found:
                    raise ValueError(f"Path {path!r} attempts to access outside the managed directory.")
                found.pop()
                continue
            entry = self._entries.get("/".join([*found, part]))
            if isinstance(entry, Link):
                links += 1
                if links > _MOST_LINKS:
                    raise ValueError(f"Path {path!r} passes too many links.")
                waiting += _parts(entry.target)[::-1]
            else:
                found.append(part)
        return "/".join(found)

    def is_dir(self, name: str) -> bool:
        """Whether a resolved name is a directory."""
        return not name or (name in self._entries and self._entries[name] is None)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        entry = self._entries.get(self.resolve(path))
        if not isinstance(entry, File):
            raise FileNotFoundError(f"File not found: {path}")
        return entry.content

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> str:
        """Make a file or replace its content, with the directories above it; its resolved name."""
        name = self.resolve(path)
        before = self._entries.get(name)
        if self.is_dir(name):
            raise IsADirectoryError(f"Is a directory: {path}")
        kept = before if isinstance(before, File) else File(b"")
        self._make_room(len(content) - len(kept.content))
        self.make_dir(name.rpartition("/")[0])
        self._entries[name] = File(content, kept.executable if executable is None else executable)
        self._size += len(content) - len(kept.content)
        return name

    def link(self, path: str, target: str) -> None:
        """Make a link. One that leads out of the tree is a ValueError."""
        name = self.resolve(path)
        if name in self._entries or not name:
            raise FileExistsError(f"There is something already: {path}")
        above = name.rpartition("/")[0]
        if target.startswith("/"):
            raise ValueError(f"Link {path!r} leads outside the managed directory, to {target!r}.")
        self.resolve(f"{above}/{target}" if above else target)
        self.make_dir(above)
        self._entries[name] = Link(target)

    def make_dir(self, path: str) -> str:
        """Make a directory and those above it, where there are none yet; its resolved name."""
        name = self.resolve(path)
        parts = name.split("/") if name else []
        for count in range(1, len(parts) + 1):
            above = "/".join(parts[:count])
            if above in self._entries and self._entries[above] is not None:
                raise NotADirectoryError(f"Not a directory: {above}")
            self._make_room(0)
            self._entries[above] = None
        return name

    def delete_file(self, path: str) -> str:
        """Remove a file, or a link and not what it leads to; its name."""
        parent, _, last = path.rstrip("/").rpartition("/")
        unfollowed = self.resolve(parent)
        name = f"{unfollowed}/{last}" if unfollowed else last
        entry = self._entries.get(name)
        if not isinstance(entry, Link):
            name = self.resolve(path)
            entry = self._entries.get(name)
        if entry is None:
            raise FileNotFoundError(f"File not found: {path}")
        del self._entries[name]
        self._size -= len(entry.content) if isinstance(entry, File) else 0
        return name

    def delete_dir(self, path: str) -> str:
        """Remove a directory with all that is in it; its resolved name."""
        name = self.resolve(path)
        if not self.is_dir(name):
            raise NotADirectoryError(f"Not a directory: {path}")
        if not name:
            raise ValueError("The managed directory itself cannot be deleted.")
        for inside in [one for one in self._entries if one == name or one.startswith(f"{name}/")]:
            entry = self._entries.pop(inside)
            self._size -= len(entry.content) if isinstance(entry, File) else 0
        return name

    def list_dir(self, path: str, *, recursive: bool = False) -> list[str]:
        """What is in a directory, as paths from the root, sorted."""
        name = self.resolve(path)
        if not self.is_dir(name):
            raise NotADirectoryError(f"Not a directory: {path}")
        start = f"{name}/" if name else ""
        inside = (one for one in self._entries if one.startswith(start) and one != name)
        return sorted(one for one in inside if recursive or "/" not in one[len(start) :])

    def to_archive(self) -> bytes:
        """The tree as a .tar.gz, the same bytes for the same tree."""
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name, entry in self.items():
                member = tarfile.TarInfo(name)
                member.mode = 0o755 if not isinstance(entry, File) or entry.executable else 0o644
                if isinstance(entry, File):
                    member.size = len(entry.content)
                    archive.addfile(member, io.BytesIO(entry.content))
                else:
                    member.type = tarfile.DIRTYPE if entry is None else tarfile.SYMTYPE
                    member.linkname = entry.target if entry is not None else ""
                    archive.addfile(member)
        return gzip.compress(raw.getvalue(), compresslevel=1, mtime=0)

    @classmethod
    def from_archive(cls, data: bytes, most_bytes: int) -> FileTree:
        """The tree of a .tar.gz that may come from anywhere. Nothing is written to disk while it is read.

        A ValueError where it holds a path or a link that leads out, a device, or more than `most_bytes`.
        """
        tree = cls(most_bytes)
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r|gz") as archive:
                for member in archive:
                    tree._take(archive, member)
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, OSError) as error:
            raise ValueError(f"the archive cannot be read: {error}") from error
        return tree

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.isdir():
            self.make_dir(member.name)
        elif member.issym():
            self.link(member.name, member.linkname)
        elif member.isfile():
            self._make_room(member.size)
            opened = archive.extractfile(member)
            content = opened.read() if opened is not None else b""
            self.write(member.name, content, executable=bool(member.mode & 0o100))
        else:
            raise ValueError(f"the archive holds {member.name!r}, which is not a file, directory or symbolic link")

    def _make_room(self, more: int) -> None:
        if self._size + more > self.most_bytes:
            raise ValueError(f"the directory may hold {self.most_bytes} bytes; delete something first")
        if len(self._entries) >= _MOST_ENTRIES:
            raise ValueError(f"the directory may hold {_MOST_ENTRIES} entries; delete something first")


def _parts(path: str) -> list[str]:
    """The names in a path."""
    if path.startswith("/"):
        raise ValueError(f"Path {path!r} attempts to access outside the managed directory. Give a relative path.")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if "\0" in path or any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise ValueError(f"Path {path[:300]!r} has a name that no file can have.")
    return parts
