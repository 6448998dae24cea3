# SPDX-License-Identifier: Apache-2.0
"""The file of the response cache: append-only JSON lines, and an index of where each entry starts.

    cache_dir/v1/responses.jsonl

    {"key":"<64 hex>","schema":1,"created":<unix seconds>,"model":"…","check":"<8 hex>","completion":{…}}

One file costs a tenth of what a file for each entry does. Nothing is ever changed in place: of two entries with one key
the later counts, a line that does not parse is skipped, and the file is pruned by putting a new one in its place.
`check` is the CRC-32 of the line without it: an entry that is not what was written is asked for again. Entries of a
time before checksums are read as they are, as long as they hold the fields they should and no others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from reward_kit.errors import StorageError
from reward_kit.models import Completion, Message
from reward_kit.storage.files import GrowingFile
from reward_kit.utils import exact_json
from reward_kit.utils.digest_map import DigestMap

__all__ = [
    "ADVICE",
    "CACHE_SCHEMA",
    "EntryFile",
    "created_at",
    "decode_entry",
    "encode_entry",
    "entries_path",
    "entry_key",
    "key_digest",
    "read_entry",
]

CACHE_SCHEMA = 1
"""The version of an entry and of what its key is made of; each has its own directory, so others are never read."""

_KEY_LENGTH = 64
_BEFORE_KEY = b'{"key":"'
_KEY = slice(len(_BEFORE_KEY), len(_BEFORE_KEY) + _KEY_LENGTH)
_AFTER_KEY = b'","schema":%d,"created":' % CACHE_SCHEMA
_CHECK = "check"
_BEFORE_CHECK = b',"check":"'
_FIELDS = {"key", "schema", "created", "model", "completion"}
"""Of an entry without a checksum."""
_BETWEEN_LOOKS = 0.01
"""Seconds during which a miss is believed without looking whether another process has written meanwhile."""
ADVICE = "Choose another `generation.cache.cache_dir`, or go without a cache: `generation.cache.enabled=false`."


# ── one entry ────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_entry(key: str, completion: Completion, *, model: str, created: int) -> bytes:
    """The entry's line. Raises ValueError for text that JSON cannot hold."""
    body = completion.__pydantic_serializer__.to_json(completion, exclude_unset=True)
    head = b'%b%b%b%d,"model":%b' % (_BEFORE_KEY, key.encode(), _AFTER_KEY, created, orjson.dumps(model))
    body = b',"completion":%b}' % body
    return b'%b,"check":"%08x"%b\n' % (head, crc32(body, crc32(head)), body)


def decode_entry(line: bytes, key: str) -> Completion | None:
    """The completion in `line`, or None when the line is not a whole entry of `key`."""
    if entry_key(line) != key.encode():
        return None
    entry = read_entry(line)
    if entry is None:
        return None
    entry["completion"]["cached"] = True
    entry["completion"].pop("retried", None)  # whoever asked has paid it
    try:
        return Completion.model_validate(entry["completion"])
    except ValueError:
        return None


def created_at(line: bytes) -> int:
    """When an entry was made, in Unix seconds."""
    start = _KEY.stop + len(_AFTER_KEY)
    return int(line[start : line.index(b",", start)])


def read_entry(line: bytes) -> dict[str, Any] | None:
    """The fields of an entry that is as it was written; None for any other line."""
    try:
        entry = exact_json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("completion"), dict):
        return None
    if _CHECK in entry:
        return entry if _is_as_written(line) else None
    completion = entry["completion"]
    known = entry.keys() == _FIELDS and completion.keys() <= Completion.model_fields.keys()
    message = completion.get("message")
    return entry if known and isinstance(message, dict) and message.keys() <= Message.model_fields.keys() else None


def _is_as_written(line: bytes) -> bool:
    start = line.find(_BEFORE_CHECK, _KEY.stop)
    end = start + len(_BEFORE_CHECK) + 8 + len(b'"')
    expected = b"%08x" % crc32(memoryview(line)[end:], crc32(memoryview(line)[:start]))
    return start > 0 and line[start:end] == b'%b%b"' % (_BEFORE_CHECK, expected)


def entry_key(line: bytes) -> bytes | None:
    """The key of a line that looks like a whole entry of this schema, without parsing it."""
    if line.startswith(_BEFORE_KEY) and line.startswith(_AFTER_KEY, _KEY.stop) and line.endswith(b"}}"):
        return line[_KEY]
    return None


def key_digest(key: str | bytes) -> int:
    """Sixty-four of the key's bits."""
    return int(key[16:32], 16)


# ── one file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def entries_path(cache_dir: Path) -> Path:
    """Where the entries of the current schema are."""
    return cache_dir / f"v{CACHE_SCHEMA}" / "responses.jsonl"


class EntryFile:
    """The entries of a cache. Opened when first used, and followed while other processes append to it or prune it."""

    __slots__ = ("_file", "_followed", "_index", "_read_only", "_scanned", "path")

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Name the file; nothing is opened yet."""
        self.path = path
        self._read_only = read_only
        self._file: GrowingFile | None = None
        self._followed = 0.0
        self._forget()

    def find(self, key: str) -> bytes | None:
        """The line that `key`'s latest entry starts, whoever wrote it. Its 64-bit digest is all that was compared."""
        digest = key_digest(key)
        offset = self._index.get(digest)
        if offset < 0 and self._may_have_grown() and self._follow():
            offset = self._index.get(digest)
        return None if offset < 0 else self.open().line_at(offset).removesuffix(b"\n")

    def append(self, entries: Mapping[str, bytes]) -> None:
        """Add lines by key; once this returns, every process finds them, even if this one is killed at once."""
        while True:
            file = self.open()
            with file.alone(or_beside_others=True):
                if not file.is_replaced:
                    self._append(file, entries)
                    return
            self._leave()

    def open(self) -> GrowingFile:
        """The open file, created if need be."""
        if self._file is None:
            self._file = GrowingFile(self.path, read_only=self._read_only, advice=ADVICE)
        return self._file

    def close(self) -> None:
        """Put the file on the disk, close it and forget its index; using it again opens it again."""
        file, self._file = self._file, None
        self._forget()
        if file is not None:
            file.close()

    def _leave(self) -> None:
        """Close a file that another has replaced: nobody needs it on the disk."""
        with contextlib.suppress(StorageError):
            self.close()

    def _forget(self) -> None:
        self._index = DigestMap()
        self._scanned = 0

    def _may_have_grown(self) -> bool:
        """Whether it is time to look again for what others wrote: asking at every miss would cost a call each."""
        now = time.monotonic()
        if now - self._followed < _BETWEEN_LOOKS:
            return False
        self._followed = now
        return True

    def _follow(self) -> bool:
        """Index what was appended since the last look; whether there was anything."""
        if self.open().is_replaced:
            self._leave()
        file = self.open()
        file.look_again()
        if file.end < self._scanned:
            self._forget()
        before = self._scanned
        for line in file.lines(before) if before < file.end else ():
            key = entry_key(line.removesuffix(b"\n"))
            if key is not None:
                self._index_entry(key, self._scanned)
            self._scanned += len(line)
        return self._scanned > before

    def _index_entry(self, key: bytes, offset: int) -> None:
        try:
            self._index.put(key_digest(key), offset)
        except ValueError:  # not hex: not a key of ours
            return

    def _append(self, file: GrowingFile, entries: Mapping[str, bytes]) -> None:
        if file.append(b"".join(entries.values())) != self._scanned:
            self._followed = 0.0  # others wrote before: the next miss looks at all of it
            return
        for key, line in entries.items():
            self._index.put(key_digest(key), self._scanned)
            self._scanned += len(line)
