"""An append-only file of JSON lines that survives kill -9.

    {"schema":1,"id":"…","response_index":0,"position":0,"content":"…","status":"ok","cost":0.0, …the entry itself…}

Every line opens with its *head*, always in this order, so that finding out what a file holds does not mean parsing it.
The key of an entry is (id, response_index); when a key occurs twice, the later line holds. A line torn by a crash is
cut off when the file is opened again: what it held is simply owed again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

import orjson

from reward_kit.errors import StorageError
from reward_kit.models import SCHEMA_VERSION
from reward_kit.storage.line_order import ScannedOrder, WrittenOrder
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Entry", "Head", "Journal", "JournalIndex", "Status", "position_in"]

Status = Literal["ok", "failed", "retry"]
"""Done; failed for good; failed in a way that entering the run again may mend."""

_STATUS_CODES = {b"ok": 0, b"failed": 1, b"retry": 2}
_STATUSES: tuple[Status, ...] = ("ok", "failed", "retry")
_STATUS_BITS = 2
_CONTENT_MASK = (1 << 63) - 1
_COPIED_AT_ONCE = 1 << 20
_OPENING = b'{"schema":'
_HEAD = re.compile(
    rb'\{"schema":(\d+),"id":("(?:[^"\\]|\\.)*"),"response_index":(\d+),"position":(\d+),'
    rb'"content":"([0-9a-f]*)","status":"(ok|failed|retry)","cost":(null|[-+0-9.eE]+)[,}]'
)


class Head(NamedTuple):
    """What opens a line: whose it is, and how it went."""

    id: str
    response_index: int
    position: int
    """Where the sample stands in its dataset."""
    content: str
    """Digest of the sample's content: a row that changed under the same id is noticed."""
    status: Status
    cost: float | None

    def line(self, body: bytes) -> bytes:
        """The whole line: this head, then the fields of `body` (a JSON object)."""
        cost = b"null" if self.cost is None else repr(float(self.cost)).encode()
        head = b'{"schema":%d,"id":%b,"response_index":%d,"position":%d,"content":"%b","status":"%b","cost":%b' % (
            SCHEMA_VERSION,
            orjson.dumps(self.id),
            self.response_index,
            self.position,
            self.content.encode(),
            self.status.encode(),
            cost,
        )
        return head + (b"," if len(body) > len(b"{}") else b"") + body[1:] + b"\n"


class _RawHead(NamedTuple):
    """A head as it stands in the file: enough to tell lines apart, at a fraction of the cost of parsing it."""

    id: bytes
    response_index: int
    position: int
    content: bytes
    status: bytes
    cost: bytes

    def parsed(self) -> Head:
        """The same, as plain values."""
        return Head(
            id=orjson.loads(self.id),
            response_index=self.response_index,
            position=self.position,
            content=self.content.decode(),
            status=_STATUSES[_STATUS_CODES[self.status]],
            cost=None if self.cost == b"null" else float(self.cost),
        )


class Entry(NamedTuple):
    """A line about to be written."""

    head: Head
    body: bytes


class JournalIndex:
    """What a journal held when it was opened: where each key's last line is, and how that attempt went."""

    def __init__(self) -> None:
        self._lines = DigestMap()
        self._contents = DigestMap()
        self.cost = 0.0
        """Money spent on the lines in the file."""
        self.lines = 0
        """Lines in the file, superseded ones included."""

    def __len__(self) -> int:
        return len(self._lines)

    def note(self, line: _RawHead, offset: int) -> None:
        """Take account of a line at `offset`."""
        key = digest64(b"%b%d" % (line.id, line.response_index))
        self._lines.put(key, offset << _STATUS_BITS | _STATUS_CODES[line.status])
        self._contents.put(digest64(line.id), _content_number(line.content))
        self.cost += 0.0 if line.cost == b"null" else float(line.cost)
        self.lines += 1

    def status(self, sample_id: str, response_index: int) -> Status | None:
        """How that attempt went, or None when there is no line for it."""
        packed = self._lines.get(_key(sample_id, response_index)) if self.lines else -1
        return None if packed < 0 else _STATUSES[packed & (1 << _STATUS_BITS) - 1]

    def offset(self, sample_id: str, response_index: int) -> int | None:
        """Where that attempt's line begins."""
        packed = self._lines.get(_key(sample_id, response_index))
        return None if packed < 0 else packed >> _STATUS_BITS

    def has_other_content(self, sample_id: str, content: str) -> bool:
        """Whether lines of this id were made from a sample with other content."""
        if not self.lines:
            return False
        known = self._contents.get(digest64(orjson.dumps(sample_id)))
        return known not in (-1, _content_number(content.encode()))


class Journal:
    """An open journal: read what it holds, append to it, compact it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open `path` for reading and appending, and cut off a torn last line; or only for reading."""
        self.path = path
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
        if not read_only:
            self._refuse_foreign()
            os.ftruncate(self._descriptor, self._end)
        self._written = WrittenOrder() if self._end == 0 else None
        """Where the lines belong, noted as they are written, where the file was empty when it was opened."""
        self._sorted = False
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

    def append(self, entries: Sequence[Entry]) -> None:
        """Write the lines in one go. When this returns, they survive the death of this process."""
        lines = [entry.head.line(entry.body) for entry in entries]
        try:
            self._write(entries, lines)
        except OSError as error:
            self._write_what_fits(entries, lines)
            raise StorageError(
                f"Cannot write to {str(self.path)!r} ({error.strerror or error}). "
                "Nothing before this is lost: make room, then run the same command again."
            ) from error

    def _write(self, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
        block = b"".join(lines)
        try:
            written = os.write(self._descriptor, block)
            if written != len(block):  # a nearly full disk takes a part of it
                raise OSError(errno.ENOSPC, f"only {written} of {len(block)} bytes were taken")
        except OSError:
            self._take_back_to(self._end)
            raise
        self._note_written(entries, lines)
        self._end += len(block)
        self.appended += len(entries)

    def _write_what_fits(self, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
        """Where not all of several lines could be written, write those that can: each of them was paid for."""
        with contextlib.suppress(OSError):
            for entry, line in zip(entries, lines, strict=True):
                self._write([entry], [line])

    def _note_written(self, entries: Sequence[Entry], lines: Sequence[bytes]) -> None:
        self._sorted = False
        if self._written is not None:
            for entry, line in zip(entries, lines, strict=True):
                self._written.note(entry.head.position, entry.head.response_index, len(line))

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        if self.read_only:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise StorageError(
                f"What was last written to {str(self.path)!r} is not on the disk ({error.strerror}). "
                "See to the disk, then run the same command again."
            ) from error

    def index(self) -> JournalIndex:
        """Read the heads of all lines."""
        index = JournalIndex()
        for line, offset in self._heads():
            index.note(line, offset)
        return index

    def in_order(self) -> Iterator[bytes]:
        """The last line of each key, in dataset order, whatever their order in the file."""
        if self._sorted:
            return self.lines()
        order = self._order()
        return self.lines() if order.is_sorted else self._placed(order)

    def entries(self) -> Iterator[Entry]:
        """Every line, to be written elsewhere; of a key that occurs twice, both lines."""
        for head, offset in self._heads():
            line = self.line_at(offset)
            yield Entry(head.parsed(), b"{" + line[_body_start(line) :].rstrip(b"\n"))

    def compact(self, position_of: Callable[[Head], int] | None = None) -> bool:
        """Rewrite the file as one line a key, in dataset order, atomically. False if it was so already.

        `position_of` tells where a sample stands now, where that is not what its line says. The lines are told.
        """
        order = self._order(position_of)
        self._sorted = order.is_sorted
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
            raise StorageError(
                f"Cannot rewrite {str(self.path)!r} in order ({error.strerror}). "
                "Its content is complete: make room, then run again."
            ) from error
        self._reopen()
        self._written, self._sorted = None, True
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
        tail = os.pread(self._descriptor, len(_OPENING), self._end)
        if not _OPENING.startswith(tail) and tail.strip(b"\0"):  # zeros: what a power cut may leave of a line
            raise self._foreign("the last line")
        if self._end:
            self._head(self.line_at(0), "line 1")

    def _foreign(self, where: str) -> StorageError:
        return StorageError(
            f"{str(self.path)!r}, {where}, is not a line of a run. Restore the file or choose another output directory."
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
        return (_moved_to(position, self.line_at(offset)) for position, offset in order.places())

    def _rewritten(self, order: WrittenOrder | ScannedOrder) -> Iterator[bytes]:
        """The same, as pieces of any length: lines that stay neighbours are copied together."""
        if not isinstance(order, WrittenOrder):
            yield from self._placed(order)
            return
        for begin, end in order.spans():
            for start in range(begin, end, _COPIED_AT_ONCE):
                yield os.pread(self._descriptor, min(_COPIED_AT_ONCE, end - start), start)

    def lines(self) -> Iterator[bytes]:
        """Every whole line as it stands in the file: one a key, in dataset order, where a finished run left it."""
        left = self._end
        with self.path.open("rb", buffering=1 << 20) as file:
            for raw in file:
                left -= len(raw)
                if left < 0:  # a torn line, or what another process appends meanwhile
                    return
                yield raw

    def _heads(self) -> Iterator[tuple[_RawHead, int]]:
        offset = 0
        for number, raw in enumerate(self.lines(), start=1):
            yield self._head(raw, f"line {number}"), offset
            offset += len(raw)

    def _head(self, raw: bytes, where: str) -> _RawHead:
        match = _HEAD.match(raw)
        if match is None or not raw.endswith(b"}\n"):
            raise self._foreign(where)
        schema, sample_id, index, position, content, status, cost = match.groups()
        if int(schema) != SCHEMA_VERSION:
            raise StorageError(
                f"{str(self.path)!r} was written with file schema {int(schema)}, and this version reads "
                f"{SCHEMA_VERSION}. Choose another output directory."
            )
        return _RawHead(sample_id, int(index), int(position), content, status, cost)

    def line_at(self, offset: int, guess: int = 4096) -> bytes:
        """The line that begins at `offset`."""
        raw = os.pread(self._descriptor, guess, offset)
        newline = raw.find(b"\n")
        if newline >= 0:
            return raw[: newline + 1]
        if len(raw) < guess:
            raise StorageError(
                f"{str(self.path)!r} ends in the middle of a line. Run the same command again to mend it."
            )
        return self.line_at(offset, guess * 8)


def _body_start(line: bytes) -> int:
    """Where the fields behind a line's head begin; at the closing brace where there are none."""
    match = _HEAD.match(line)
    return 0 if match is None else match.end() - line[match.end() - 1 : match.end()].count(b"}")


def position_in(line: bytes) -> int | None:
    """Where the sample of a line stands, by the line's head; None for what is not a line of a journal."""
    match = _HEAD.match(line)
    return None if match is None else int(match[4])


def _moved_to(position: int, line: bytes) -> bytes:
    """The line with its head saying that its sample stands at `position`."""
    match = _HEAD.match(line)
    if match is None or int(match[4]) == position:
        return line
    return b"%b%d%b" % (line[: match.start(4)], position, line[match.end(4) :])


def _key(sample_id: str, response_index: int) -> int:
    return digest64(b"%b%d" % (orjson.dumps(sample_id), response_index))


def _content_number(content: bytes) -> int:
    return int(content or b"0", 16) & _CONTENT_MASK
