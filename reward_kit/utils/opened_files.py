# SPDX-License-Identifier: Apache-2.0
"""Which files somebody's code opens to read, told by Python's own audit events.

    watched = OpenedFiles()
    with watched.here():         # this task, and threads that it hands its context to
        judge(answer)
    watched.watch_everywhere()   # or all of this process, for good
    watched.take()               # paths that were not taken before: those that were read, and those written to

What is also written to is no input. Python's own files and those of installed packages are for whoever
takes the paths to leave out. What a library opens by itself, in C, is not seen: whoever knows of such a file says so,
and that it is written to shows in the file. Of the databases of SQLite Python tells.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["Noted", "OpenedFiles"]

_MOST = 1000
"""Files that are kept in mind."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_here: ContextVar[OpenedFiles | None] = ContextVar("reward-kit opened files", default=None)
_everywhere: OpenedFiles | None = None
_is_hooked = False


class Noted(NamedTuple):
    """Files by their full paths."""

    read: list[str]
    written: list[str]


class OpenedFiles:
    """The files that were opened while this watched."""

    def __init__(self, earlier: Iterable[OpenedFiles] = ()) -> None:
        """Watch nothing yet; what was opened while others watched is told here, too."""
        self._unseen: dict[str, _State] = {}
        self._seen: set[tuple[object, bool]] = set()
        self._read: list[str] = []
        self._written: list[str] = []
        for each in earlier:
            self._unseen |= each._unseen
            self._read += each._read
            self._written += each._written

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Watch what the code inside opens."""
        _hook()
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)

    def watch_everywhere(self) -> None:
        """Watch what any code of this process opens, from now on."""
        global _everywhere  # noqa: PLW0603 - it belongs to the process, which has one reward
        _hook()
        _everywhere = self

    def join(self) -> None:
        """Watch what this task opens from now on, and no other watch."""
        if _here.get() is not self:
            _hook()
            _here.set(self)

    @property
    def has_news(self) -> bool:
        """Whether there is something to take."""
        unseen = self._unseen
        return bool(self._read or self._written or (unseen and any(_state(at) != was for at, was in unseen.items())))

    def take(self) -> Noted:
        """What was not taken before, as full paths."""
        for path in [path for path, was in self._unseen.items() if _state(path) != was]:
            del self._unseen[path]
            self._written.append(path)
        read, self._read = self._read, []
        written, self._written = self._written, []
        return Noted([path for path in read if path not in written], written)

    def note(self, path: object, flags: object) -> None:
        """Take account of a file that is being opened."""
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        writing = isinstance(flags, int) and bool(flags & _WRITING)
        known = (path, writing)
        if not isinstance(path, str) or known in self._seen or len(self._seen) >= _MOST:
            return
        self._seen.add(known)
        if not path.startswith(("/proc/", "/sys/", "/dev/")):
            (self._written if writing else self._read).append(os.path.abspath(path))  # now: the folder may change

    def note_database(self, name: object) -> None:
        """Take account of a database of SQLite that is being opened: a path, or `file:a.db?mode=ro`."""
        if not isinstance(name, str | bytes | os.PathLike):
            return
        path = os.fsdecode(name)
        if path.startswith("file:"):
            path = unquote(urlsplit(path).path)
        if os.path.isfile(path):  # none where it is in memory, or made just now
            self.note_unseen(path)

    def note_unseen(self, path: str) -> None:
        """Take account of a file that is read, or written to, where nobody sees it."""
        self._unseen.setdefault(os.path.abspath(path), _state(path))
        self.note(path, os.O_RDONLY)


_State = tuple[int, int, int]


def _state(file: str) -> _State:
    """What shows that a file was written to: when, its size, and the size of what waits to be put into a database."""
    try:
        held = os.stat(file)
        waiting = os.stat(f"{file}-wal").st_size if os.path.exists(f"{file}-wal") else 0
    except OSError:
        return (0, 0, 0)
    return (held.st_mtime_ns, held.st_size, waiting)


def _hook() -> None:
    """Hear of files that are opened. Python has no way to take such a hook back, so there is one for all."""
    global _is_hooked  # noqa: PLW0603 - see above
    if not _is_hooked:
        _is_hooked = True
        sys.addaudithook(_note_opening)


def _note_opening(event: str, args: tuple[object, ...]) -> None:
    if event in ("open", "sqlite3.connect"):
        watching = _here.get() or _everywhere
        if watching is None:
            return
        if event == "open":
            path, _, flags = args
            watching.note(path, flags)
        else:
            watching.note_database(args[0])
