# SPDX-License-Identifier: Apache-2.0
"""An append-only file of JSON lines that survives kill -9.

The key of an entry is (id, response_index); when a key occurs twice, the later line holds. A line torn by a crash is
cut off when the file is opened again: what it held is simply done again. Every line is written with a checksum and
compared with it when it is read: one that differs is an error that names the line, or is left out and done again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from reward_kit.errors import StorageError
from reward_kit.models import READABLE_SCHEMAS, SCHEMA_VERSION
from reward_kit.storage.journal_index import NOTHING_SPENT, JournalIndex, ScannedOrder, WrittenOrder
from reward_kit.storage.journal_lines import (
    HEAD,
    OPENING,
    Entry,
    Head,
    Line,
    RawHead,
    body_start,
    is_whole,
    moved_to,
    raw_head,
)
from reward_kit.utils.checksums import check_line, sealed_line, unsealed

__all__ = ["Journal"]

_NEWLINE = b"\n"
_COPIED_AT_ONCE = 1 << 20
_SCHEMAS = frozenset(b"%d" % schema for schema in READABLE_SCHEMAS)


class Journal:
    """An open journal: read what it holds, append to it, compact it."""

    def __init__(self, path: Path, *, read_only: bool = False, owed_again: bool = False) -> None:
        """Open `path` for reading and appending, and cut off a torn last line; or only for reading.

        `owed_again`: what a damaged line held can be made again, so it is left out; else a damaged line is an error.
        """
        self.path = path
        self._owed_again = owed_again
        self.damaged: set[int] = set()
        """The numbers of the lines that were left out, as far as they were read."""
        self.unchecked = 0
        """Lines without a checksum that were read last: they were written before there were any."""
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            purpose, advice = (
                ("reading", "Check the path.") if read_only else ("writing", "Choose another output directory.")
            )
            raise StorageError(f"Cannot open {str(path)!r} for {purpose} ({error.strerror}). {advice}") from error
        self.read_only = read_only
        """Whether nothing may be written: the file is somebody else's."""
        self._end = self._end_of_last_line()
        self._is_ours = self._end == 0
        """Whether this very object wrote every line: what it has just written it need not compare."""
        if not read_only:
            self._refuse_foreign()
            os.ftruncate(self._descriptor, self._end)
        self._written = WrittenOrder() if self._end == 0 else None
        """Where the lines belong, noted as they are written, where the file was empty when it was opened."""
        self._keys: int | None = None
        """How many keys there are, where compacting has just counted them."""
        self._sorted = False
        self._index: JournalIndex | None = None
        """What was found when the lines were last looked through, as long as none was added."""
        self.appended = 0
        """Lines written since the journal was opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def holds_lines(self) -> bool:
        """Whether there is at least one whole line."""
        return self._end > 0

    @property
    def keys(self) -> int:
        """How many entries there are, superseded lines not counted."""
        if self._keys is not None:
            return self._keys
        return len(self.index() if self._written is None else self._written)

    @property
    def keys_at_hand(self) -> int | None:
        """How many entries there are, where that need not be looked up: the file was empty when it was opened."""
        return self.appended if self._written is not None else self._keys

    def append(self, entries: Sequence[Entry | Line]) -> None:
        """Write the lines in one go. When this returns, they survive the death of this process."""
        plain = (entry.line() if isinstance(entry, Entry) else entry for entry in entries)
        lines = [(position, index, sealed_line(data)) for position, index, data in plain]
        try:
            self._write(lines)
        except OSError as error:
            self._write_what_fits(lines)
            raise StorageError(
                f"Cannot write to {str(self.path)!r} ({error.strerror or error}). "
                "Nothing before this is lost: make room, then run the same command again."
            ) from error

    def _write(self, lines: Sequence[Line]) -> None:
        block = b"".join([data for _, _, data in lines])
        try:
            written = os.write(self._descriptor, block)
            if written != len(block):  # a nearly full disk takes a part of it
                raise OSError(errno.ENOSPC, f"only {written} of {len(block)} bytes were taken")
        except OSError:
            self._take_back_to(self._end)
            raise
        self._sorted, self._keys, self._index = False, None, None
        if self._written is not None:
            self._written.note(lines)
        self._end += len(block)
        self.appended += len(lines)

    def _write_what_fits(self, lines: Sequence[Line]) -> None:
        """Where not all of several lines could be written, write those that can: each of them was paid for."""
        with contextlib.suppress(OSError):
            for line in lines:
                self._write([line])

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        if self.read_only:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StorageError(
                f"What was last written to {str(self.path)!r} is not on the disk ({error.strerror}). Check the disk, "
                "then run the same command again."
            ) from error

    def index(self) -> JournalIndex:
        """Read the heads of all lines, unless they were read before and are still the same."""
        if self._index is None:
            index = JournalIndex()
            index.note_all(self._raw_heads())
            self._sorted = index.is_in_order and not self.damaged
            self._index = index
        return self._index

    def spent(self) -> float:
        """Money spent on what the lines tell. The last line of a key has what those before it cost."""
        index = self.index()
        if index.is_in_order:
            return index.cost
        paid = ((head, offset) for head, offset in self._heads() if head.cost not in NOTHING_SPENT)
        heads = ((head.parsed(), offset) for head, offset in paid)
        return sum(head.cost or 0.0 for head, offset in heads if index.offset(head.id, head.response_index) == offset)

    def in_order(self) -> Iterator[bytes]:
        """The last line of each key, in dataset order, whatever their order in the file."""
        if self._sorted:
            return self.lines()
        order = self._order()
        return self.lines() if order.is_sorted else self._placed(order)

    def entries(self) -> Iterator[Entry]:
        """Every line, to be written elsewhere; of a key that occurs twice, both lines."""
        for head, offset in self._heads():
            line = unsealed(self.line_at(offset))
            yield Entry(head.parsed(), b"{" + line[body_start(line) :].rstrip(b"\n"))

    def compact(self, position_of: Callable[[Head], int] | None = None) -> bool:
        """Rewrite the file as one line per key, in dataset order, atomically. False if it was so already.

        `position_of` gives the present position of each line's sample, where it has changed since the line was written.
        """
        order = self._order(position_of)
        self._sorted = order.is_sorted and not self.damaged
        self._keys = len(order)
        if self._sorted:
            return False
        replacement = self.path.with_name(self.path.name + ".compacting")
        try:
            with replacement.open("wb") as file:
                file.writelines(self._rewritten(order))
                file.flush()
                os.fsync(file.fileno())
            replacement.replace(self.path)
        except OSError as error:
            replacement.unlink(missing_ok=True)
            advice = "Its content is complete: make room, then run again."
            if not self.path.exists():
                advice = "The file or its directory was taken away during the run: restore it, or run again."
            raise StorageError(f"Cannot rewrite {str(self.path)!r} in order ({error.strerror}). {advice}") from error
        self._reopen()
        self._written, self._sorted, self._index = None, True, None
        self.damaged.clear()
        return True

    def close(self) -> None:
        """Put everything on the disk and let go of the file."""
        if self._descriptor >= 0:
            try:
                self.sync()
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def _reopen(self) -> None:
        os.close(self._descriptor)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._end = os.fstat(self._descriptor).st_size

    def _refuse_foreign(self) -> None:
        """Leave a file alone that is not a journal, and above all do not cut off its last line."""
        tail = os.pread(self._descriptor, len(OPENING), self._end)
        if not OPENING.startswith(tail) and tail.strip(b"\0"):  # zeros: what a power cut may leave of a line
            raise self._foreign("the last line")
        if self._end and not (self._owed_again and any(is_whole(line) is not False for line in self._raw_lines())):
            self._head(self.line_at(0), "line 1")

    def _foreign(self, where: str) -> StorageError:
        return StorageError(
            f"{str(self.path)!r}, {where}, is not a line of a run. Restore the file or choose another output directory."
        )

    def _damage(self, number: int) -> StorageError:
        return StorageError(
            f"{str(self.path)!r}, line {number}, is damaged: it is not what was written there. Restore the file, or "
            f"have `reward-kit doctor {str(self.path.parent)!r} --mend` set the line aside, so that it is made again."
        )

    def _end_of_last_line(self) -> int:
        end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - 65536)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0

    def _take_back_to(self, size: int) -> None:
        """Remove what a failed write left behind, so that the file never holds half a line."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError:
            return  # opening the file again cuts the torn line off

    def _order(self, position_of: Callable[[Head], int] | None = None) -> WrittenOrder | ScannedOrder:
        # A file that was empty when it was opened was filled in one pass: its lines say where their samples stand.
        if self._written is not None:
            return self._written
        order = ScannedOrder()
        for line, offset in self._heads():
            position = line.position if position_of is None else position_of(line.parsed())
            order.note(line.id, position, line.response_index, offset, says=line.position)
        return order

    def _placed(self, order: WrittenOrder | ScannedOrder) -> Iterator[bytes]:
        """The lines to keep, in order, each saying where its sample stands."""
        if isinstance(order, WrittenOrder):
            return map(self.line_at, order.offsets())
        return (moved_to(position, self.line_at(offset)) for position, offset in order.places())

    def _rewritten(self, order: WrittenOrder | ScannedOrder) -> Iterator[bytes]:
        """The same, as pieces of any length: lines that stay neighbours are copied together."""
        if not isinstance(order, WrittenOrder):
            yield from self._placed(order)
            return
        for begin, end in order.spans():
            for start in range(begin, end, _COPIED_AT_ONCE):
                yield os.pread(self._descriptor, min(_COPIED_AT_ONCE, end - start), start)

    def lines(self) -> Iterator[bytes]:
        """Every whole line as it stands in the file: one per key, in dataset order, where a finished run left it."""
        return self._raw_lines() if self._is_ours else (line for _, _, line in self._checked())

    def _checked(self) -> Iterator[tuple[int, int, bytes]]:
        """The number, the offset and the bytes of every line, compared with its checksum."""
        offset = self.unchecked = 0
        for number, raw in enumerate(self._raw_lines(), start=1):
            if check_line(raw) or (whole := is_whole(raw)):
                yield number, offset, raw
            elif whole is None:
                self.unchecked += 1
                yield number, offset, raw
            elif self._owed_again:
                self.damaged.add(number)
            elif raw.startswith(OPENING):
                self._refuse_schema(raw)
                raise self._damage(number)
            else:
                raise self._foreign(f"line {number}")
            offset += len(raw)

    def _raw_lines(self) -> Iterator[bytes]:
        left = self._end
        with self.path.open("rb", buffering=1 << 20) as file:
            for raw in file:
                left -= len(raw)
                if left < 0:  # a torn line, or what another process appends meanwhile
                    return
                yield raw

    def _heads(self) -> Iterator[tuple[RawHead, int]]:
        for offset, groups in self._raw_heads():
            yield raw_head(groups), offset

    def _raw_heads(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """The offset of every line, and the groups of its `HEAD`."""
        for number, offset, raw in self._checked():
            match = HEAD.match(raw)
            if match is None or not raw.endswith(b"}\n"):
                raise self._foreign(f"line {number}")
            groups = match.groups()
            if groups[0] not in _SCHEMAS:
                self._refuse_schema(raw)
            yield offset, groups

    def _head(self, raw: bytes, where: str) -> RawHead:
        match = HEAD.match(raw)
        if match is None or not raw.endswith(b"}\n"):
            raise self._foreign(where)
        self._refuse_schema(raw)
        return raw_head(match.groups())

    def _refuse_schema(self, line: bytes) -> None:
        """Say of a line that a later version wrote that it is not read; it may well be whole."""
        match = HEAD.match(line)
        if match is not None and int(match[1]) > SCHEMA_VERSION:
            known = " and ".join(map(str, READABLE_SCHEMAS))
            raise StorageError(
                f"{str(self.path)!r} was written with file schema {int(match[1])}, and this version reads {known}. "
                "Choose another output directory."
            )

    def line_at(self, offset: int) -> bytes:
        """The line that begins at `offset`."""
        line = self._line_at(offset)
        if not self._is_ours and is_whole(line) is False:
            before = os.pread(self._descriptor, offset, 0)
            self._head(line, f"line {before.count(_NEWLINE) + 1}")
            raise self._damage(before.count(_NEWLINE) + 1)
        return line

    def _line_at(self, offset: int, guess: int = 4096) -> bytes:
        raw = os.pread(self._descriptor, guess, offset)
        newline = raw.find(_NEWLINE)
        if newline >= 0:
            return raw[: newline + 1]
        if len(raw) < guess:
            raise StorageError(
                f"{str(self.path)!r} ends in the middle of a line. Run the same command again to repair it."
            )
        return self._line_at(offset, guess * 8)
