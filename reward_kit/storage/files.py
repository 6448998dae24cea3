# SPDX-License-Identifier: Apache-2.0
"""The two ways in which a file is written: one that grows by whole lines, and one that is replaced as a whole.

    GrowingFile   each block of lines is one write: what was appended survives the death of this process. A last line
                  that a crash tore is cut off when the file is written to again.
    Draft         written beside the file, put on the disk, then renamed: one sees the old file or the new one.

Every file of a run is written in one of them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from reward_kit.errors import StorageError

__all__ = ["Draft", "GrowingFile", "find_line", "write_whole"]

_READ_AT_ONCE = 1 << 16
_MOST_LINES = 4096
"""Bytes that hold most lines."""
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
"""What filesystems without locks answer: some network and cluster filesystems, as they are mounted."""
_NOTHING_LOST = "Nothing before this is lost: make room, then run the same command again."


class GrowingFile:
    """An open file of lines, to read from and to append to."""

    def __init__(
        self, path: Path, *, read_only: bool = False, always_on_disk: bool = False, advice: str | None = None
    ) -> None:
        """Open `path`, and create it unless it is only to be read.

        `always_on_disk`: a block is on the disk itself when `append` returns, so that it survives a loss of power too.
        `advice` ends the message where nothing can be written.
        """
        self.path = path
        self.read_only = read_only
        """Whether nothing may be written: the file is somebody else's."""
        self._always_on_disk = always_on_disk
        self._advice = advice or _NOTHING_LOST
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            self.descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
        except OSError as error:
            purpose, remedy = (
                ("reading", "Check the path.") if read_only else ("writing", "Choose another output directory.")
            )
            raise StorageError(
                f"Cannot open {str(path)!r} for {purpose} ({error.strerror}). {advice or remedy}"
            ) from error
        self.end = self._end_of_last_line()
        """Where the last whole line ends."""
        self._is_new = self.end == 0
        """Whether the disk may not know its name yet."""
        self._may_cut = True
        """Whether nobody else can be in the middle of a line."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, size: int, offset: int) -> bytes:
        """As many bytes from there on, or as many as there are."""
        return os.pread(self.descriptor, size, offset)

    def line_at(self, offset: int, guess: int = _MOST_LINES) -> bytes:
        """The line that begins there."""
        raw = self.read(guess, offset)
        newline = raw.find(b"\n")
        if newline >= 0:
            return raw[: newline + 1]
        if len(raw) < guess:
            raise StorageError(
                f"{str(self.path)!r} ends in the middle of a line. Run the same command again to repair it."
            )
        return self.line_at(offset, guess * 8)

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """Every whole line from there on. What is torn, or appended meanwhile by another process, is left out."""
        left = self.end - start
        with io.BufferedReader(_Content(self.descriptor, start), 1 << 20) as content:
            for line in content:
                left -= len(line)
                if left < 0:
                    return
                yield line

    def look_again(self) -> None:
        """Take account of what another process appended meanwhile."""
        self.end = self._end_of_last_line(self.end)

    @property
    def is_replaced(self) -> bool:
        """Whether another file is in its place by now, or none."""
        try:
            return not os.path.samestat(os.fstat(self.descriptor), self.path.stat())
        except FileNotFoundError:
            return True

    def cut_torn_line(self) -> None:
        """Cut off what a crash left behind the last whole line."""
        if self._size() != self.end:
            os.ftruncate(self.descriptor, self.end)

    @contextlib.contextmanager
    def alone(self, *, or_beside_others: bool = False) -> Iterator[None]:
        """Keep other processes that append under this lock out, and begin where the last of them ended.

        `or_beside_others`: where the filesystem has no locks, go on without. Nothing is then cut off, since it may be
        what somebody is writing, and every block begins on a line of its own, which may leave an empty one before it.
        """
        try:
            try:
                self._may_cut = self._lock(needed=not or_beside_others)
                self.look_again()
                if self._may_cut:
                    self.cut_torn_line()
            except OSError as error:
                raise _not_written(self.path, error, self._advice) from error
            yield
        finally:
            with contextlib.suppress(OSError):  # there was none to be had
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def _lock(self, *, needed: bool) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if needed or error.errno not in _NO_LOCKS:
                raise
            return False
        return True

    def append(self, block: bytes) -> int:
        """Write whole lines in one go, and say where they begin. A `StorageError` leaves the file as it was."""
        try:
            _write_block(self.descriptor, block if self._may_cut else b"\n" + block)
            if self._always_on_disk:
                self._force()
        except OSError as error:
            with contextlib.suppress(OSError):  # opening the file again cuts the torn line off
                if self._may_cut:
                    self.cut_torn_line()
            raise _not_written(self.path, error, self._advice) from error
        self.end = os.lseek(self.descriptor, 0, os.SEEK_CUR)  # others may have appended
        return self.end - len(block)

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        if self.read_only or self.descriptor < 0:
            return
        try:
            self._force()
        except OSError as error:
            raise StorageError(
                f"What was last written to {str(self.path)!r} is not on the disk ({error.strerror}). Check the disk, "
                "then run the same command again."
            ) from error

    def _force(self) -> None:
        os.fsync(self.descriptor)
        if self._is_new:
            _force_names(self.path.parent)
            self._is_new = False

    def write_anew(self, pieces: Iterable[bytes]) -> None:
        """Put other content in the place of the file, whole or not at all, and go on with that."""
        with Draft(self.path, advice=self._advice_for_replacing()) as draft:
            draft.write_all(pieces)
        os.close(self.descriptor)
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self.end = os.fstat(self.descriptor).st_size
        self._is_new = True

    def close(self) -> None:
        """Put everything on the disk and let go of the file."""
        if self.descriptor >= 0:
            try:
                self.sync()
            finally:
                os.close(self.descriptor)
                self.descriptor = -1

    def _advice_for_replacing(self) -> str:
        if self.path.exists():
            return "Its content is complete: make room, then run again."
        return "The file or its directory was taken away during the run: restore it, or run again."

    def _size(self) -> int:
        return os.lseek(self.descriptor, 0, os.SEEK_END)  # a quarter of what `fstat` costs; nothing else moves by it

    def _end_of_last_line(self, known: int = 0) -> int:
        """Where the last line ends. `known` is where one ends: what is before that need not be read."""
        end = self._size()
        known = known if known <= end else 0
        while end > known:
            start = max(known, end - _READ_AT_ONCE)
            newline = os.pread(self.descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return known


class _Content(io.RawIOBase):
    """What is in an open file from there on, whatever its path leads to by now, and whoever writes to it."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor = os.dup(descriptor)  # the file may be closed before it is read to its end
        self._place = start

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = os.preadv(self._descriptor, [buffer], self._place)
        self._place += size
        return size


def write_whole(target: Path, content: bytes | str, *, advice: str = "Nothing was changed: make room.") -> None:
    """Put this into the place of a file, or change nothing."""
    with Draft(target, advice=advice, make_folder=True) as draft:
        draft.write(content.encode() if isinstance(content, str) else content)


class Draft:
    """What will take the place of a file. It does where its block ends well; else it is thrown away."""

    def __init__(
        self, target: Path, *, advice: str = _NOTHING_LOST, make_folder: bool = False, mode: int | None = None
    ) -> None:
        """Begin a draft beside `target`. `advice` ends the message where that cannot be written.

        `mode`: the permissions that the file must have, whatever the process gives new files.
        """
        self.target = target
        self.path = target.with_name(f"{target.name}.writing")
        """Where the draft is, for whoever writes to a path."""
        self._advice = advice
        try:
            if make_folder:
                target.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode or 0o666)
            if mode is not None:
                os.fchmod(descriptor, mode)
        except OSError as error:
            raise _not_written(target, error, advice) from error
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.keep()
            return
        self.discard()
        if isinstance(error, OSError):
            raise _not_written(self.target, error, self._advice) from error

    def write(self, data: bytes) -> None:
        """Write more of it."""
        self.write_all((data,))

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Write all pieces."""
        try:
            self._file.writelines(pieces)
        except OSError as error:
            raise _not_written(self.target, error, self._advice) from error

    def keep(self) -> None:
        """Put the draft on the disk, and then in the place of the file."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            is_new = not self.target.exists()
            self.path.replace(self.target)
            if is_new:
                _force_names(self.target.parent)
        except OSError as error:
            self.discard()
            raise _not_written(self.target, error, self._advice) from error

    def discard(self) -> None:
        """Throw the draft away."""
        with contextlib.suppress(OSError):  # closing writes what is left, for which there may be no room
            self._file.close()
        self.path.unlink(missing_ok=True)


def _not_written(path: Path, error: OSError, advice: str) -> StorageError:
    return StorageError(f"Cannot write to {str(path)!r} ({error.strerror or error}). {advice}")


def _force_names(folder: Path) -> None:
    """Put the names of the files in a folder on the disk: what is in a file without one is lost with the power."""
    with contextlib.suppress(OSError):  # the folder was taken away, or its filesystem knows no such order
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def find_line(path: Path, words: bytes, within: int) -> bytes | None:
    """The first line that has these words in its beginning, where a text cannot have them; None where there is none.

    `within`: how many bytes stand before them at most.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            place = content.find(words)
            while place >= 0:
                start = content.rfind(b"\n", 0, place) + 1
                if place - start <= within:
                    end = content.find(b"\n", place)
                    return content[start : end + 1 if end >= 0 else len(content)]
                place = content.find(words, place + 1)
    except (OSError, ValueError):  # there is no such file, or it is empty
        return None
    return None


def _write_block(descriptor: int, block: bytes) -> None:
    """Write all of `block` in one call; an `OSError` where only a part of it was taken."""
    written = os.write(descriptor, block)
    if written != len(block):  # a nearly full disk takes a part of it
        raise OSError(errno.ENOSPC, f"only {written} of {len(block)} bytes were taken")
