# SPDX-License-Identifier: Apache-2.0
"""A compact map from 64-bit digests to whole numbers, for indexes that must stay small while a run grows.

A `dict` from strings to integers costs well over 100 bytes per entry. This map costs 16 bytes per slot and keeps
between two fifths and four fifths of its slots in use, so an index over a million keys takes some 32 MB.
"""

from __future__ import annotations

from array import array

__all__ = ["DigestMap", "digest64"]

_MASK64 = (1 << 64) - 1
_SMALLEST = 8
"""Slots of an empty map; always a power of two, so that `& mask` picks a slot."""


def digest64(text: str | bytes) -> int:
    """A 64-bit digest of `text`, for this process only: the interpreter's own salted hash, by far the cheapest."""
    return hash(text) & _MASK64


class DigestMap:
    """An open-addressing hash map from unsigned 64-bit integers to non-negative integers below 2**63.

    Keys are expected to be digests: they choose their slot unmixed. Two texts may share a digest (about one chance in
    37 million among a million keys), so whoever cannot bear that verifies what the value points at.
    """

    __slots__ = ("_count", "_keys", "_limit", "_mask", "_values")

    def __init__(self) -> None:
        """Start empty."""
        self._count = 0
        self._allocate(_SMALLEST)

    def __len__(self) -> int:
        """How many keys the map holds."""
        return self._count

    def __contains__(self, key: int) -> bool:
        """Whether the map holds a value for `key`."""
        return self._values[self._slot(key)] != 0

    def get(self, key: int, default: int = -1) -> int:
        """The value last put under `key`, or `default`."""
        # The first probe is written out here because most lookups end with it.
        slot = key & self._mask
        stored = self._values[slot]
        if stored and self._keys[slot] != key:
            stored = self._values[self._slot(key)]
        return stored - 1 if stored else default

    def put(self, key: int, value: int) -> None:
        """Let `key` map to `value`, replacing what it mapped to."""
        stored = self.put_first(key, value)
        if stored >= 0:
            self._values[self._slot(key)] = value + 1

    def put_first(self, key: int, value: int) -> int:
        """Let `key` map to `value` unless it maps to something already; returns that, or -1."""
        if value < 0:
            raise ValueError(f"value {value!r} is negative; put a whole number from 0 to 2**63 - 1")
        values = self._values
        slot = key & self._mask
        if values[slot]:  # most keys find a free slot at once
            slot = self._slot(key)
            if stored := values[slot]:
                return stored - 1
        self._keys[slot] = key
        values[slot] = value + 1
        self._count += 1
        if self._count > self._limit:
            self._grow()
        return -1

    def _slot(self, key: int) -> int:
        """The slot that holds `key`, or the free one where it belongs."""
        keys, values, mask = self._keys, self._values, self._mask
        slot = key & mask
        if not values[slot] or keys[slot] == key:
            return slot
        # Mixing in the high bits scatters keys that share their low ones; once they are used up, 5 * slot + 1 visits
        # every slot, and a free one always exists. The mask keeps a key that is out of range from probing for ever.
        perturb = key & _MASK64
        while True:
            perturb >>= 5
            slot = (5 * slot + perturb + 1) & mask
            if not values[slot] or keys[slot] == key:
                return slot

    def _allocate(self, slots: int) -> None:
        # Values are stored plus one, so that zero marks a free slot.
        self._keys = array("Q", (0,)) * slots
        self._values = array("Q", (0,)) * slots
        self._mask = slots - 1
        self._limit = slots * 4 // 5

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        self._allocate(2 * len(keys))
        for key, stored in zip(keys, values, strict=True):
            if stored:
                slot = self._slot(key)
                self._keys[slot] = key
                self._values[slot] = stored
