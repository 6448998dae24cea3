"""Which line of a journal comes where once it is in dataset order, in a few bytes a line.

Sorting without sorting: a slot a (position, response index) is filled with the offset of its last line. Only where two
samples claim the same position (the dataset was edited between two entries), or slots would be far more than lines, are
the lines sorted instead.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from reward_kit.storage.journal_lines import Line
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["ScannedOrder", "WrittenOrder"]

_MOST_SLOTS_A_LINE = 64


class WrittenOrder:
    """The order of lines that one pass over a dataset wrote: a position belongs to one sample, and stays its own.

    Noted from the file's first line on, so that the lines' lengths say where they begin.
    """

    def __init__(self) -> None:
        self._positions, self._indexes, self._lengths = array("I"), array("H"), array("I")

    def __len__(self) -> int:
        """How many lines are to be kept: one a key."""
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
        """Whether the lines are in order already, with one line a key."""
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
        """How many lines are to be kept: one a key."""
        return len(self._offsets) if self._in_order else len(set(zip(self._owners, self._indexes, strict=True)))

    @property
    def is_sorted(self) -> bool:
        """Whether the lines are in order already, with one line a key, and say where they stand."""
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
    return bool(positions) and (max(positions) + 1) * (max(indexes) + 1) <= _MOST_SLOTS_A_LINE * len(positions)


def _by_slots(positions: array[int], indexes: array[int], values: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The position and the last value of each place, in order."""
    width = max(indexes) + 1
    slots = array("Q", bytes(8 * (max(positions) + 1) * width))
    for position, index, value in zip(positions, indexes, values, strict=True):
        slots[position * width + index] = value + 1
    return ((number // width, slot - 1) for number, slot in enumerate(slots) if slot)
