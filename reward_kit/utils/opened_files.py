# SPDX-License-Identifier: Apache-2.0
"""Which files somebody's code opens to read, told by Python's own audit events.

    watched = OpenedFiles()
    with watched.here():         # this task, and threads that it hands its context to
        judge(answer)
    watched.watch_everywhere()   # or all of this process, for good
    watched.take()               # paths that were not taken before: those that were read, and those written to

What is also written to is no input. Python's own files and those of installed packages are for whoever
takes the paths to leave out. What a library opens by itself, in C, is not seen.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

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

    def __init__(self) -> None:
        """Watch nothing yet."""
        self.has_news = False
        """Whether there is something to take."""
        self._seen: set[tuple[object, bool]] = set()
        self._read: list[str] = []
        self._written: list[str] = []

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

    def take(self) -> Noted:
        """What was not taken before, as full paths."""
        self.has_news = False
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
            self.has_news = True


def _hook() -> None:
    """Hear of files that are opened. Python has no way to take such a hook back, so there is one for all."""
    global _is_hooked  # noqa: PLW0603 - see above
    if not _is_hooked:
        _is_hooked = True
        sys.addaudithook(_note_opening)


def _note_opening(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        watching = _here.get() or _everywhere
        if watching is not None:
            path, _, flags = args
            watching.note(path, flags)
