# SPDX-License-Identifier: Apache-2.0
"""The file of the response cache: append-only JSON lines, and an index of where each entry starts.

    cache_dir/v1/responses.jsonl

    {"key":"<64 hex>","schema":1,"created":<unix seconds>,"model":"…","check":"<8 hex>","completion":{…}}

Entries are written to a file opened for appending, some or many in one `write`, which no other process can cut in two;
that costs a tenth of what a file for each entry does. Nothing is ever changed in place: of two entries with one key the
later counts, a line that does not parse is skipped, and the file is pruned by putting a new one in its place.
`check` is the CRC-32 of the line without it: an entry that is not what was written is asked for again. Entries of a
time before checksums are read as they are, as long as they hold the fields they should and no others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from reward_kit.models import Completion, Message
from reward_kit.storage.files import write_block
from reward_kit.utils import exact_json
from reward_kit.utils.digest_map import DigestMap

__all__ = [
    "CACHE_SCHEMA",
    "EntryFile",
    "created_at",
    "decode_entry",
    "encode_entry",
    "entries_path",
    "entry_key",
    "key_digest",
    "lines",
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
_BLOCK = 1 << 20
"""Bytes read at a time while the file is scanned."""
_FIRST_READ = 4096
"""Bytes read for one entry; most fit, and more are read for those that do not."""
_READ_AHEAD = 1 << 16
"""Bytes read where entries are asked for in the order they were written, as a repeated run does."""
_BETWEEN_LOOKS = 0.01
"""Seconds during which a miss is believed without looking whether another process has written meanwhile."""
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
"""What filesystems without locks answer: some network and cluster filesystems, as they are mounted."""


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


def lines(descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Each whole line between two offsets, with its own offset and without its newline."""
    rest, position = b"", start
    while start < end and (block := os.pread(descriptor, min(_BLOCK, end - start), start)):
        start += len(block)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield position, line
            position += len(line) + 1


class EntryFile:
    """The entries of a cache. Opened when first used, and followed while other processes append to it or prune it."""

    __slots__ = ("_block", "_block_start", "_descriptor", "_flags", "_followed", "_index", "_scanned", "path")

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Name the file; nothing is opened yet."""
        self.path = path
        self._flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
        self._descriptor = -1
        self._followed = 0.0
        self._forget()

    def find(self, key: str) -> bytes | None:
        """The line that `key`'s latest entry starts, whoever wrote it. Its 64-bit digest is all that was compared."""
        digest = key_digest(key)
        offset = self._index.get(digest)
        if offset < 0 and self._may_have_grown() and self._follow():
            offset = self._index.get(digest)
        return None if offset < 0 else self._line_at(offset)

    def append(self, entries: Mapping[str, bytes]) -> None:
        """Add lines by key; once this returns, every process finds them, even if this one is killed at once."""
        while True:
            descriptor = self.open()
            locked = _lock_shared(descriptor)
            try:
                if not self._replaced(os.fstat(descriptor)):
                    self._write(descriptor, entries)
                    return
            finally:
                if locked:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
            self.close()

    def open(self) -> int:
        """The file's descriptor, opened and created if need be."""
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, self._flags | os.O_CLOEXEC, 0o666)
        return self._descriptor

    def close(self) -> None:
        """Close the file and forget its index; using it again opens it again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._forget()

    def _forget(self) -> None:
        self._index = DigestMap()
        self._scanned = 0
        self._block, self._block_start = b"", 0
        """What was last read of the file, and where it stands there: what has been written once stays as it is."""

    def _may_have_grown(self) -> bool:
        """Whether it is time to look again for what others wrote: asking at every miss would cost a call each."""
        now = time.monotonic()
        if now - self._followed < _BETWEEN_LOOKS:
            return False
        self._followed = now
        return True

    def _follow(self) -> bool:
        """Index what was appended since the last look; whether there was anything."""
        status = os.fstat(self.open())
        if self._replaced(status):
            self.close()
            status = os.fstat(self.open())
        if status.st_size < self._scanned:
            self._forget()
        before = self._scanned
        for offset, line in lines(self._descriptor, before, status.st_size):
            key = entry_key(line)
            if key is not None:
                self._index_entry(key, offset)
            self._scanned = offset + len(line) + 1
        return self._scanned > before

    def _index_entry(self, key: bytes, offset: int) -> None:
        try:
            self._index.put(key_digest(key), offset)
        except ValueError:  # not hex: not a key of ours
            return

    def _replaced(self, status: os.stat_result) -> bool:
        """Whether pruning has put another file in the place of the open one, or removed it."""
        if status.st_nlink:
            return False
        # A filesystem may not count links at all: only another file under the name is proof.
        try:
            return not os.path.samestat(status, self.path.stat())
        except FileNotFoundError:
            return True

    def _line_at(self, offset: int) -> bytes:
        start = offset - self._block_start
        if 0 <= start < len(self._block):
            end = self._block.find(b"\n", start)
            if end >= 0:
                return self._block[start:end]
        size = _READ_AHEAD if 0 < start < len(self._block) + _FIRST_READ else _FIRST_READ
        while True:
            data = os.pread(self._descriptor, size, offset)
            end = data.find(b"\n")
            if end >= 0:
                self._block, self._block_start = data, offset
                return data[:end]
            if len(data) < size:
                return data
            size *= 4

    def _write(self, descriptor: int, entries: Mapping[str, bytes]) -> None:
        block = b"".join(entries.values())
        start = _append(descriptor, block)
        if start not in (0, self._scanned) and os.pread(descriptor, 1, start - 1) != b"\n":
            # A writer died inside its line, and these were glued to it. Say them again on lines of their own.
            start = _append(descriptor, b"\n" + block) + 1
        if start == self._scanned:
            for key, line in entries.items():
                self._index.put(key_digest(key), self._scanned)
                self._scanned += len(line)
        else:
            self._followed = 0.0  # others wrote before: the next miss looks at all of it


def _append(descriptor: int, data: bytes) -> int:
    """Append in one write and say where the data went."""
    write_block(descriptor, data)
    return os.lseek(descriptor, 0, os.SEEK_CUR) - len(data)


def _lock_shared(descriptor: int) -> bool:
    """Keep `prune` out while an entry is written. Writers share it: appending needs no protection from each other."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True
