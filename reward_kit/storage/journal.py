# SPDX-License-Identifier: Apache-2.0
"""An append-only file of JSON lines that survives kill -9.

The key of an entry is (id, response_index); when a key occurs twice, the later line holds. A line torn by a crash is
cut off when the file is opened again: what it held is simply done again. Every line is written with a checksum and
compared with it when it is read: one that differs is an error that names the line, or is left out and done again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from reward_kit.errors import StorageError
from reward_kit.models import READABLE_SCHEMAS, SCHEMA_VERSION
from reward_kit.storage.files import GrowingFile
from reward_kit.storage.journal_index import NOTHING_SPENT, JournalIndex, ScannedOrder, WrittenOrder
from reward_kit.storage.journal_lines import (
    HEAD,
    OPENING,
    Entry,
    Head,
    Line,
    RawHead,
    body_start,
    ends_foreign,
    is_whole,
    moved_to,
    raw_head,
)
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line, sealed_line, unsealed

__all__ = ["Journal"]

_NEWLINE = b"\n"
_COPIED_AT_ONCE = 1 << 20
_SCHEMAS = frozenset(b"%d" % schema for schema in READABLE_SCHEMAS)


class Journal:
    """An open journal: read what it holds, append to it, compact it."""

    def __init__(
        self, path: Path, *, read_only: bool = False, owed_again: bool = False, always_on_disk: bool = False,
        samples: Samples | None = None,
    ) -> None:  # fmt: skip
        """Open `path` for reading and appending, and cut off a torn last line; or only for reading.

        `owed_again`: what a damaged line held can be made again, so it is left out; else a damaged line is an error.
        `always_on_disk`: lines are on the disk itself when `append` returns.
        `samples`: those that the lines name, shared with other files; else those in the file beside this one.
        """
        self.path = path
        self.samples = samples or Samples(path.with_name(SAMPLES), read_only=read_only, always_on_disk=always_on_disk)
        """What the lines name, which is on disk before them."""
        self._file = GrowingFile(path, read_only=read_only, always_on_disk=always_on_disk)
        self._owed_again = owed_again
        self.damaged: set[int] = set()
        """The numbers of the lines that were left out, as far as they were read."""
        self.unchecked = 0
        """Lines without a checksum that were read last: they were written before there were any."""
        self.read_only = read_only
        """Whether nothing may be written: the file is somebody else's."""
        self._is_ours = self._file.end == 0
        """Whether this very object wrote every line: what it has just written it need not compare."""
        if not read_only:
            self._refuse_foreign()
            self._file.cut_torn_line()
        self._written = WrittenOrder() if self._file.end == 0 else None
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
        return self._file.end > 0

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
        self.samples.flush()
        try:
            self._write(lines)
        except StorageError:
            with contextlib.suppress(StorageError):  # those that do fit: each of them was paid for
                for line in lines:
                    self._write([line])
            raise

    def _write(self, lines: Sequence[Line]) -> None:
        self._file.append(b"".join([data for _, _, data in lines]))
        self._sorted, self._keys, self._index = False, None, None
        if self._written is not None:
            self._written.note(lines)
        self.appended += len(lines)

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        self.samples.sync()
        self._file.sync()

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

    def rows(self) -> Iterator[dict[str, Any]]:
        """The fields of these lines."""
        return map(exact_json.loads, self.in_order())

    def rows_for_figures(self) -> Iterator[dict[str, Any]]:
        """The same, where a number of very many digits may be a near one."""
        return map(exact_json.loads_for_figures, self.in_order())

    def entries(self) -> Iterator[Entry]:
        """Every line, to be written elsewhere; of a key that occurs twice, both lines."""
        for head, offset in self._heads():
            line = unsealed(self.line_at(offset))
            schema = max(int(line[len(OPENING) : line.index(b",")]), 2)  # which has the checksum that it will have
            yield Entry(head.parsed(), b"{" + line[body_start(line) :].rstrip(b"\n"), schema)

    def compact(self, position_of: Callable[[Head], int] | None = None) -> bool:
        """Rewrite the file as one line per key, in dataset order, atomically. False if it was so already.

        `position_of` gives the present position of each line's sample, where it has changed since the line was written.
        """
        order = self._order(position_of)
        self._sorted = order.is_sorted and not self.damaged
        self._keys = len(order)
        if self._sorted:
            return False
        self._file.write_anew(self._rewritten(order))
        self._written, self._sorted, self._index = None, True, None
        self.damaged.clear()
        return True

    def close(self) -> None:
        """Put everything on the disk and let go of the file."""
        try:
            self.samples.close()
        finally:
            self._file.close()

    def _refuse_foreign(self) -> None:
        """Leave a file alone that is not a journal, and above all do not cut off its last line."""
        if ends_foreign(self._file):
            raise self._foreign("the last line")
        if self._file.end and not (
            self._owed_again and any(is_whole(line) is not False for line in self._file.lines())
        ):
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
                yield self._file.read(min(_COPIED_AT_ONCE, end - start), start)

    def lines(self) -> Iterator[bytes]:
        """Every whole line as it stands in the file: one per key, in dataset order, where a finished run left it."""
        return self._file.lines() if self._is_ours else (line for _, _, line in self._checked())

    def _checked(self) -> Iterator[tuple[int, int, bytes]]:
        """The number, the offset and the bytes of every line, compared with its checksum."""
        offset = self.unchecked = 0
        for number, raw in enumerate(self._file.lines(), start=1):
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
            known = f"{READABLE_SCHEMAS[0]} to {READABLE_SCHEMAS[-1]}"
            raise StorageError(
                f"{str(self.path)!r} was written with file schema {int(match[1])}, and this version reads {known}. "
                "Choose another output directory."
            )

    def line_at(self, offset: int) -> bytes:
        """The line that begins at `offset`."""
        line = self._file.line_at(offset)
        if not self._is_ours and is_whole(line) is False:
            before = self._file.read(offset, 0)
            self._head(line, f"line {before.count(_NEWLINE) + 1}")
            raise self._damage(before.count(_NEWLINE) + 1)
        return line
