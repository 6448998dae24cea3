# SPDX-License-Identifier: Apache-2.0
"""What is known of a journal's lines without reading them again, in a few bytes per line.

`JournalIndex` says where each key's last line is and how that attempt went: what a run that is entered asks.
`WrittenOrder` and `ScannedOrder` say which line comes where once the file is in dataset order: what compaction asks.
No sorting is needed: a slot per (position, response index) is filled with the offset of its last line. Only where
two samples claim the same position (the dataset was edited between two entries), or slots would be far more than lines,
are the lines sorted instead.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import orjson

from reward_kit.storage.journal_lines import STATUS_CODES, STATUSES, Line, Status
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["NOTHING_SPENT", "Found", "JournalIndex", "ScannedOrder", "WrittenOrder"]

_STATUS_BITS = 2
_STATUS_MASK = (1 << _STATUS_BITS) - 1
_CONTENT_MASK = (1 << 63) - 1
_SEVERAL = _CONTENT_MASK
"""Stands for the content of a sample whose lines differ in it."""
_MASK64 = (1 << 64) - 1
_SPREAD = 0x9E3779B97F4A7C15
"""An odd number without a pattern: multiples of it set keys of one sample far apart."""
_OWNERS_AT_ONCE = 1 << 20
NOTHING_SPENT = (b"0.0", b"null")
"""The costs of lines that cost nothing."""


class JournalIndex:
    """What a journal held when it was opened: where each key's last line is, and how that attempt went.

    Lines are noted in arrays, which is enough to compare two journals that are in order. The maps that find a key are
    made when one is first looked up.
    """

    def __init__(self) -> None:
        self._owners, self._contents = array("Q"), array("Q")
        self._indexes, self._packed = array("Q"), array("Q")
        self._maps: _Maps | None = None
        self.cost = 0.0
        """Money spent on the lines in the file, superseded ones included."""
        self.lines = 0
        """Lines in the file, superseded ones included."""
        self._samples = 0
        self._rises = True
        self._distinct: bool | None = None

    def __len__(self) -> int:
        return self.lines if self.is_in_order else len(self._found().lines)

    def note_all(self, heads: Iterable[tuple[int, tuple[bytes, ...]]]) -> None:
        """Take account of lines, given as their offsets and the groups of `HEAD`, in the order of the file.

        One loop without calls of our own: entering a run goes through every line of two files.
        """
        own, say, number, pack = (
            column.append for column in (self._owners, self._contents, self._indexes, self._packed)
        )
        last_owner, last_position, last_index, rises, samples = -1, -1, -1, True, 0
        lines, cost = 0, 0.0
        for offset, (_, sample_id, raw_index, raw_position, content, status, spent) in heads:
            owner, index, position = hash(sample_id) & _MASK64, int(raw_index), int(raw_position)
            if owner == last_owner:
                rises = rises and position == last_position and index > last_index
            else:
                rises = rises and position > last_position
                samples += 1
            last_owner, last_position, last_index = owner, position, index
            own(owner)
            say(int(content, 16) & _CONTENT_MASK if content else 0)
            number(index)
            pack(offset << _STATUS_BITS | STATUS_CODES[status])
            if spent not in NOTHING_SPENT:
                cost += float(spent)
            lines += 1
        self.lines, self.cost, self._rises, self._samples = lines, cost, rises, samples

    @property
    def is_in_order(self) -> bool:
        """Whether the file holds one line per key, in dataset order, each sample's lines together."""
        if self._distinct is None:
            self._distinct = self._rises and self._count_owners() == self._samples
        return self._distinct

    @property
    def samples(self) -> int:
        """Of how many samples there are lines."""
        return self._samples if self.is_in_order else self._count_owners()

    def _count_owners(self) -> int:
        """How many samples there are; a part of them at a time, so that many take no more memory than few."""
        parts = 1 + self.lines // _OWNERS_AT_ONCE
        if parts == 1:
            return len(set(self._owners))
        return sum(len({owner for owner in self._owners if owner % parts == part}) for part in range(parts))

    def status(self, sample_id: str, response_index: int) -> Status | None:
        """How that attempt went, or None when there is no line for it."""
        packed = self._found().lines.get(_key(_owner(sample_id), response_index)) if self.lines else -1
        return None if packed < 0 else STATUSES[packed & _STATUS_MASK]

    def offset(self, sample_id: str, response_index: int) -> int | None:
        """Where that attempt's line begins."""
        packed = self._found().lines.get(_key(_owner(sample_id), response_index))
        return None if packed < 0 else packed >> _STATUS_BITS

    def has_other_content(self, sample_id: str, content: str) -> bool:
        """Whether lines of this id, be it one of several, were made from a sample with other content."""
        if not self.lines:
            return False
        known = self._found().contents.get(_owner(sample_id))
        return known not in (-1, _content_number(content.encode()))

    def _found(self) -> _Maps:
        if self._maps is None:
            self._maps = _Maps(DigestMap(), DigestMap())
            lines, contents = self._maps
            for owner, index, packed in zip(self._owners, self._indexes, self._packed, strict=True):
                lines.put(_key(owner, index), packed)
            for owner, content in zip(self._owners, self._contents, strict=True):
                known = contents.put_first(owner, content)
                if known not in (-1, content):
                    contents.put(owner, _SEVERAL)
        return self._maps

    # -- two journals side by side

    def entries(self) -> Iterator[Found]:
        """The lines of a file that is in order."""
        for owner, index, packed in zip(self._owners, self._indexes, self._packed, strict=True):
            yield Found(owner, index, packed >> _STATUS_BITS, STATUSES[packed & _STATUS_MASK])

    def statuses_in(self, other: JournalIndex) -> list[Status | None]:
        """For each line of this file, which is in order, how `other` says that the same attempt went."""
        if other.is_in_order and (found := self._statuses_beside(other)) is not None:
            return found
        packed = map(other._found().lines.get, map(_key, self._owners, self._indexes))
        return [None if held < 0 else STATUSES[held & _STATUS_MASK] for held in packed]

    def _statuses_beside(self, other: JournalIndex) -> list[Status | None] | None:
        """The same, by going through both files at once; None where they do not stand in the same order."""
        theirs = zip(other._owners, other._indexes, other._packed, strict=True)
        nothing = (-1, -1, 0)
        owner, index, packed = next(theirs, nothing)
        found: list[Status | None] = []
        for place in zip(self._owners, self._indexes, strict=True):
            if place == (owner, index):
                found.append(STATUSES[packed & _STATUS_MASK])
                owner, index, packed = next(theirs, nothing)
            else:
                found.append(None)
        return found if owner < 0 else None


class Found(NamedTuple):
    """A line of a journal."""

    owner: int
    """Tells its sample from others."""
    response_index: int
    offset: int
    status: Status


class _Maps(NamedTuple):
    """Compact maps: from an answer to the place of its line, and from a sample to the digest of its content."""

    lines: DigestMap
    contents: DigestMap


def _owner(sample_id: str) -> int:
    return digest64(orjson.dumps(sample_id))


def _key(owner: int, response_index: int) -> int:
    return (owner ^ response_index * _SPREAD) & _MASK64


def _content_number(content: bytes) -> int:
    return int(content or b"0", 16) & _CONTENT_MASK


# ── dataset order ─────────────────────────────────────────────────────────────────────────────────────────────────────

_MOST_SLOTS_PER_LINE = 64


class WrittenOrder:
    """The order of lines that one pass over a dataset wrote: a position belongs to one sample, and stays its own.

    Noted from the file's first line on, so that the lines' lengths say where they begin.
    """

    def __init__(self) -> None:
        self._positions, self._indexes, self._lengths = array("I"), array("H"), array("I")

    def __len__(self) -> int:
        """How many lines are to be kept: one per key."""
        return len(self._positions) if self.is_sorted else sum(1 for _ in self._numbers())

    def note(self, lines: Sequence[Line]) -> None:
        """Take account of lines just written."""
        try:
            self._extend(lines)
        except OverflowError:  # the few files that need more than the small arrays hold get larger ones
            self._positions, self._indexes = array("Q", self._positions), array("Q", self._indexes)
            self._lengths = array("Q", self._lengths)
            self._extend(lines)

    def _extend(self, lines: Sequence[Line]) -> None:
        """Add to all columns, or to none where one cannot hold a number."""
        positions = array(self._positions.typecode, [position for position, _, _ in lines])
        indexes = array(self._indexes.typecode, [index for _, index, _ in lines])
        lengths = array(self._lengths.typecode, [len(data) for _, _, data in lines])
        self._positions += positions
        self._indexes += indexes
        self._lengths += lengths

    @property
    def is_sorted(self) -> bool:
        """Whether the lines are in order already, with one line per key."""
        places = pairwise(zip(self._positions, self._indexes, strict=True))
        return all(place < following for place, following in places)

    def offsets(self) -> Iterator[int]:
        """Where the lines to keep begin, in order: the last line of each key."""
        begins = array("Q", accumulate(self._lengths, initial=0))
        return (begins[number] for number in self._numbers())

    def spans(self) -> Iterator[tuple[int, int]]:
        """The same as spans of the file, each from its first byte to behind its last: neighbours stay together."""
        begins = array("Q", accumulate(self._lengths, initial=0))
        first = behind = -1
        for number in self._numbers():
            if number != behind:
                if behind > 0:
                    yield begins[first], begins[behind]
                first = number
            behind = number + 1
        if behind > 0:
            yield begins[first], begins[behind]

    def _numbers(self) -> Iterator[int]:
        """The lines to keep, in order, by their number in the file."""
        numbers = range(len(self._positions))
        if _slots_are_worth_it(self._positions, self._indexes):
            return (number for _, number in _by_slots(self._positions, self._indexes, numbers))
        columns = zip(self._positions, self._indexes, numbers, strict=True)
        last = {(position, index): number for position, index, number in columns}
        return (last[place] for place in sorted(last))


class ScannedOrder:
    """The order of lines found in a file, whoever wrote them: a sample stands where its last line says."""

    def __init__(self) -> None:
        self._positions, self._indexes, self._offsets = array("Q"), array("Q"), array("Q")
        self._owners = array("Q")
        self._place_of = DigestMap()
        self._moved = False
        self._in_order = True
        self._last = (-1, 0, 0)

    def __len__(self) -> int:
        """How many lines are to be kept: one per key."""
        return len(self._offsets) if self._in_order else len(set(zip(self._owners, self._indexes, strict=True)))

    @property
    def is_sorted(self) -> bool:
        """Whether the lines are in order already, with one line per key, and say where they stand."""
        return self._in_order and not self._moved

    def note(self, sample_id: bytes, position: int, response_index: int, offset: int, *, says: int) -> None:
        """Take account of the next line: its sample stands at `position`, and the line `says` where it stood."""
        owner = digest64(sample_id)
        if (position, owner) != self._last[:2]:
            self._moved = self._moved or self._place_of.get(owner, position) != position
            self._place_of.put(owner, position)
        place = (position, owner, response_index)
        self._in_order = self._in_order and place > self._last and says == position
        self._last = place
        self._positions.append(position)
        self._indexes.append(response_index)
        self._offsets.append(offset)
        self._owners.append(owner)

    def places(self) -> Iterator[tuple[int, int]]:
        """The position and the offset of each line to keep, in order."""
        if self._moved:
            self._positions = array("Q", [self._place_of.get(owner) for owner in self._owners])
        if _slots_are_worth_it(self._positions, self._indexes) and self._one_owner_a_position():
            return _by_slots(self._positions, self._indexes, self._offsets)
        columns = zip(self._positions, self._owners, self._indexes, self._offsets, strict=True)
        last = {(position, owner, index): offset for position, owner, index, offset in columns}
        return ((place[0], last[place]) for place in sorted(last))

    def _one_owner_a_position(self) -> bool:
        claimed = array("Q", bytes(8 * (max(self._positions) + 1)))
        for position, owner in zip(self._positions, self._owners, strict=True):
            if claimed[position] not in (0, owner):
                return False
            claimed[position] = owner
        return True


def _slots_are_worth_it(positions: array[int], indexes: array[int]) -> bool:
    return bool(positions) and (max(positions) + 1) * (max(indexes) + 1) <= _MOST_SLOTS_PER_LINE * len(positions)


def _by_slots(positions: array[int], indexes: array[int], values: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The position and the last value of each place, in order."""
    width = max(indexes) + 1
    slots = array("Q", bytes(8 * (max(positions) + 1) * width))
    for position, index, value in zip(positions, indexes, values, strict=True):
        slots[position * width + index] = value + 1
    return ((number // width, slot - 1) for number, slot in enumerate(slots) if slot)
