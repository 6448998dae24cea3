# SPDX-License-Identifier: Apache-2.0
"""Objects of a store as files that can be read: lazily, from any place on, and over a connection that breaks."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from reward_kit.stores.addresses import last_name
from reward_kit.stores.reasons import StoreError
from reward_kit.stores.store import Facts, Store

__all__ = ["StoredObject", "objects_at"]

_BLOCK = 8 << 20
"""Bytes that are asked for at once when an object is read from its beginning."""
_LOOK_AGAIN = 1.0
"""Seconds after which it is looked whether an object that is being read is still the same."""


class StoredObject:
    """An object as it is now: its name, its size, and what tells whether it is still the same."""

    def __init__(self, store: Store, facts: Facts) -> None:
        """Take what the store says of it; nothing is read yet."""
        self.store = store
        self.facts = facts

    def __str__(self) -> str:
        return self.facts.address

    @property
    def name(self) -> str:
        """The last part of its address."""
        return last_name(self.facts.address)

    @property
    def suffix(self) -> str:
        """The suffix of its name, such as `.jsonl`."""
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of its name, such as `.jsonl` and `.gz`."""
        return PurePosixPath(self.name).suffixes

    def open(self) -> BinaryIO:
        """Its bytes, a block at a time."""
        return cast(BinaryIO, io.BufferedReader(self.open_raw(), _BLOCK))

    def open_raw(self) -> ObjectReader:
        """The same for readers that know which bytes they want, such as Parquet's."""
        return ObjectReader(self.store, self.facts)


class ObjectReader(io.RawIOBase):
    """Reads exactly the bytes that are asked for. After an error, reading goes on where it was."""

    def __init__(self, store: Store, facts: Facts) -> None:
        """Begin at the first byte."""
        super().__init__()
        self._store, self._facts = store, facts
        self._place = 0
        self._looked = time.monotonic()

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on from another place."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._facts.size}[whence]
        self._place = max(0, begin + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer (anything that can be written to); less only at the end of the object."""
        room = memoryview(buffer).cast("B")
        end = min(self._facts.size, self._place + len(room))
        data = self._store.read(self._facts.address, self._place, end) if end > self._place else b""
        if data:
            self._refuse_another(at_end=end == self._facts.size)
        room[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _refuse_another(self, *, at_end: bool) -> None:
        """Stop where the object was replaced while it was read: half of each is nobody's data."""
        if not at_end and time.monotonic() - self._looked < _LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        now = self._store.facts(self._facts.address)
        if now is None or (now.size, now.version) != (self._facts.size, self._facts.version):
            raise StoreError("it was changed or removed while it was read")


def objects_at(address: str, options: Mapping[str, Any] | None = None) -> list[StoredObject]:
    """The objects that an address means: itself, what a glob matches, or what lies in a folder; maybe none."""
    store = Store(address, options)
    if any(sign in address for sign in "*?["):
        return [StoredObject(store, facts) for facts in store.matching(address)]
    facts = store.facts(address)
    if facts is None:
        return []
    if not facts.is_folder:
        return [StoredObject(store, facts)]
    return [StoredObject(store, facts) for facts in store.inside(address) if not facts.is_folder]
