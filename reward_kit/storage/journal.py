"""An append-only file of JSON lines that survives kill -9.

    {"schema":1,"id":"…","response_index":0,"position":0,"content":"…","status":"ok","cost":0.0, …the entry itself…}

Every line opens with its *head*, always in this order, so that finding out what a file holds does not mean parsing it.
The key of an entry is (id, response_index); when a key occurs twice, the later line holds. A line torn by a crash is
cut off when the file is opened again: what it held is simply owed again.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import orjson

from reward_kit.errors import StorageError
from reward_kit.models import SCHEMA_VERSION
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Entry", "Head", "Journal", "JournalIndex", "Status"]

Status = Literal["ok", "failed", "retry"]
"""Done; failed for good; failed in a way that entering the run again may mend."""

_STATUS_CODES: dict[str, int] = {"ok": 0, "failed": 1, "retry": 2}
_STATUSES: tuple[Status, ...] = ("ok", "failed", "retry")
_STATUS_BITS = 2
_CONTENT_MASK = (1 << 63) - 1
_MAX_SLOTS_PER_LINE = 64
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

    def note(self, head: Head, offset: int) -> None:
        """Take account of a line at `offset`."""
        self._lines.put(_key(head.id, head.response_index), offset << _STATUS_BITS | _STATUS_CODES[head.status])
        self._contents.put(digest64(head.id), _content_number(head.content))
        self.cost += head.cost or 0.0
        self.lines += 1

    def status(self, sample_id: str, response_index: int) -> Status | None:
        """How that attempt went, or None when there is no line for it."""
        packed = self._lines.get(_key(sample_id, response_index))
        return None if packed < 0 else _STATUSES[packed & (1 << _STATUS_BITS) - 1]

    def offset(self, sample_id: str, response_index: int) -> int | None:
        """Where that attempt's line begins."""
        packed = self._lines.get(_key(sample_id, response_index))
        return None if packed < 0 else packed >> _STATUS_BITS

    def has_other_content(self, sample_id: str, content: str) -> bool:
        """Whether lines of this id were made from a sample with other content."""
        known = self._contents.get(digest64(sample_id))
        return known not in (-1, _content_number(content))


class Journal:
    """An open journal: read what it holds, append to it, compact it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open `path` for reading and appending, and cut off a torn last line; or only for reading."""
        self.path = path
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            purpose, advice = ("reading", "Check the path.") if read_only else ("writing", "Choose another output directory.")
            raise StorageError(f"Cannot open {str(path)!r} for {purpose} ({error.strerror}). {advice}") from error
        self.read_only = read_only
        """Whether nothing may be written: the file is somebody else's."""
        self._end = self._end_of_last_line()
        if not read_only:
            os.ftruncate(self._descriptor, self._end)
        self.appended = 0
        """Lines written since the journal was opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write the lines in one go. When this returns, they survive the death of this process."""
        block = b"".join([entry.head.line(entry.body) for entry in entries])
        try:
            written = os.write(self._descriptor, block)
            if written != len(block):  # a nearly full disk takes a part of it
                raise OSError(28, f"only {written} of {len(block)} bytes were taken")
        except OSError as error:
            self._take_back_to(self._end)
            reason = error.strerror or str(error)
            raise StorageError(
                f"Cannot write to {str(self.path)!r} ({reason}). Nothing before this is lost: make room, then run the same command again."
            ) from error
        self._end += len(block)
        self.appended += len(entries)

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        os.fsync(self._descriptor)

    def index(self) -> JournalIndex:
        """Read the heads of all lines."""
        index = JournalIndex()
        for head, offset in self._heads():
            index.note(head, offset)
        return index

    def read(self, offset: int) -> dict[str, Any]:
        """The line at `offset`, parsed."""
        line: dict[str, Any] = orjson.loads(self._line_at(offset))
        return line

    def in_order(self) -> Iterator[dict[str, Any]]:
        """The last line of each key, parsed, in dataset order, whatever their order in the file."""
        for offset in _LineOrder(self._heads(), _stored_position).offsets():
            yield self.read(offset)

    def compact(self, position_of: Callable[[Head], int] | None = None) -> bool:
        """Rewrite the file as one line a key, in dataset order, atomically. False if it was so already.

        `position_of` tells where a sample stands now, where that is not what its line says.
        """
        order = _LineOrder(self._heads(), position_of or _stored_position)
        if order.is_sorted:
            return False
        replacement = self.path.with_name(self.path.name + ".compacting")
        try:
            with replacement.open("wb") as file:
                for offset in order.offsets():
                    file.write(self._line_at(offset))
                file.flush()
                os.fsync(file.fileno())
            replacement.replace(self.path)
        except OSError as error:
            replacement.unlink(missing_ok=True)
            raise StorageError(
                f"Cannot rewrite {str(self.path)!r} in order ({error.strerror}). Its content is complete: make room, then run again."
            ) from error
        self._reopen()
        return True

    def close(self) -> None:
        """Put everything on the disk and let go of the file."""
        if self._descriptor >= 0:
            if not self.read_only:
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _reopen(self) -> None:
        os.close(self._descriptor)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._end = os.fstat(self._descriptor).st_size

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

    def _heads(self) -> Iterator[tuple[Head, int]]:
        offset = 0
        with self.path.open("rb", buffering=1 << 20) as file:
            for number, raw in enumerate(file, start=1):
                if offset >= self._end:  # a torn line, or what another process appends meanwhile
                    return
                yield self._parse_head(raw, f"line {number}"), offset
                offset += len(raw)

    def _parse_head(self, raw: bytes, where: str) -> Head:
        match = _HEAD.match(raw)
        if match is None or not raw.endswith(b"}\n"):
            raise StorageError(
                f"{str(self.path)!r}, {where}, is not a line of a run. Restore the file or choose another output directory."
            )
        schema, sample_id, index, position, content, status, cost = match.groups()
        if int(schema) != SCHEMA_VERSION:
            raise StorageError(
                f"{str(self.path)!r} was written with file schema {int(schema)}, and this version reads {SCHEMA_VERSION}. Choose another output directory."
            )
        return Head(
            id=orjson.loads(sample_id),
            response_index=int(index),
            position=int(position),
            content=content.decode(),
            status=_STATUSES[_STATUS_CODES[status.decode()]],
            cost=None if cost == b"null" else float(cost),
        )

    def _line_at(self, offset: int, guess: int = 4096) -> bytes:
        raw = os.pread(self._descriptor, guess, offset)
        newline = raw.find(b"\n")
        if newline >= 0:
            return raw[: newline + 1]
        if len(raw) < guess:
            raise StorageError(f"{str(self.path)!r} ends in the middle of a line. Run the same command again to mend it.")
        return self._line_at(offset, guess * 8)


class _LineOrder:
    """Which line comes where once a journal is in dataset order, in a few bytes a line.

    A slot a (position, response index) is filled with the offset of its last line. Only where two samples claim the
    same slot (the dataset was edited between two entries) are the lines sorted instead.
    """

    def __init__(self, heads: Iterator[tuple[Head, int]], position_of: Callable[[Head], int]) -> None:
        self._positions, self._indexes, self._offsets = array("Q"), array("Q"), array("Q")
        self._ids = array("Q")
        self.is_sorted = True
        """Whether the lines are in order already, with one line a key."""
        previous = (-1, -1)
        for head, offset in heads:
            place = (position_of(head), head.response_index)
            self.is_sorted = self.is_sorted and place > previous
            previous = place
            self._positions.append(place[0])
            self._indexes.append(place[1])
            self._offsets.append(offset)
            self._ids.append(digest64(head.id))

    def offsets(self) -> Iterator[int]:
        """Where the lines to keep begin, in order."""
        return self._by_slots() if self._slots_suffice() else self._by_sorting()

    def _slots_suffice(self) -> bool:
        if not self._offsets:
            return True
        width = max(self._indexes) + 1
        if (max(self._positions) + 1) * width > _MAX_SLOTS_PER_LINE * len(self._offsets):
            return False
        owners = array("Q", bytes(8 * (max(self._positions) + 1)))
        for position, owner in zip(self._positions, self._ids, strict=True):
            if owners[position] not in (0, owner):
                return False
            owners[position] = owner
        return True

    def _by_slots(self) -> Iterator[int]:
        if not self._offsets:
            return
        width = max(self._indexes) + 1
        slots = array("Q", bytes(8 * (max(self._positions) + 1) * width))
        for position, index, offset in zip(self._positions, self._indexes, self._offsets, strict=True):
            slots[position * width + index] = offset + 1
        yield from (slot - 1 for slot in slots if slot)

    def _by_sorting(self) -> Iterator[int]:
        columns = zip(self._ids, self._indexes, self._positions, self._offsets, strict=True)
        last = {(owner, index): (position, offset) for owner, index, position, offset in columns}
        places = sorted((position, owner, index, offset) for (owner, index), (position, offset) in last.items())
        yield from (offset for *_, offset in places)


def _stored_position(head: Head) -> int:
    return head.position


def _key(sample_id: str, response_index: int) -> int:
    return digest64(f"{response_index}\x00{sample_id}")


def _content_number(content: str) -> int:
    return int(content or "0", 16) & _CONTENT_MASK
