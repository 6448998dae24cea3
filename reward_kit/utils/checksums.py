# SPDX-License-Identifier: Apache-2.0
"""Checksums inside the files we write, so that a flipped bit is told from an answer.

    {"schema":2, … ,"check":"1c291ca3"}     a line: CRC-32 of every byte before `,"check"`
    {… , "check": "1c291ca3"}               a document (manifest, summary): CRC-32 of its other fields, written anew
    … # check: 1c291ca3                     a YAML file: CRC-32 of every byte before that last line
    PAR1 pages … check:1c291ca3:5d0a3e91 footer length PAR1
                                            a Parquet file: CRC-32 of the footer and of all before it. Readers find the
                                            footer from its length, and never look at what stands before it

CRC-32 finds every flip of up to three bits and every burst of up to 32 bits, and misses one in four billion of other
damages. It is in the standard library, and costs 0.6 µs for a line of 2,000 bytes. It is no signature: whoever may
write the file may write another checksum.

Each check comes to True: as it was written; False: damaged; None: the file never had a checksum.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import orjson

__all__ = [
    "CHECK", "check_document", "check_line", "check_parquet", "check_text", "seal_parquet", "sealed_document",
    "sealed_line", "sealed_text", "unsealed",
]  # fmt: skip

CHECK = "check"
"""The name of the field."""

_BEFORE = b',"check":"'
_SEAL = len(_BEFORE) + 8 + len(b'"}')
_NAME = rb"(?:.?heck|c.?eck|ch.?ck|che.?k|chec.?|check.|.check)"
_NEARLY_A_LINE = re.compile(rb'"%b":"[^"]{7,9}"\}$' % _NAME, re.DOTALL)
"""A seal that lost a byte or has another one in its place: such a line had a checksum once."""
_NEARLY_A_FIELD = re.compile(_NAME.decode(), re.DOTALL)
_NEARLY_A_TEXT = re.compile(rb"%b.{0,3}[0-9a-f ]{5,9}.?\s*\Z" % _NAME, re.DOTALL)
_TEXT_SEAL = b"# check: %08x\n"


def sealed_line(line: bytes) -> bytes:
    """The line (an object that holds something, and a newline) with its checksum."""
    body = line[:-2]
    return b'%b,"check":"%08x"}\n' % (body, crc32(body))


def unsealed(line: bytes) -> bytes:
    """The line as it was before `sealed_line`."""
    return line[: -_SEAL - 1] + b"}\n" if line.startswith(_BEFORE, len(line) - _SEAL - 1) else line


def check_line(line: bytes) -> bool | None:
    """Whether a line, with its newline or without, is as it was written."""
    end = len(line) - line.endswith(b"\n")
    start = end - _SEAL
    if start > 0 and line.startswith(_BEFORE, start) and line.startswith(b'"}', end - 2):
        return b"%08x" % crc32(line[:start]) == line[end - 10 : end - 2]  # a copy costs less than two views
    return False if _NEARLY_A_LINE.search(line, max(0, end - _SEAL - 2), end) else None


def sealed_document(fields: dict[str, Any]) -> bytes:
    """The document as indented JSON, with its checksum."""
    rest = {name: value for name, value in fields.items() if name != CHECK}
    return _indented(rest | {CHECK: _of(rest)})


def check_document(fields: dict[str, Any]) -> bool | None:
    """Whether a document is what was written. The checksum is taken out of `fields`."""
    if CHECK in fields:
        noted = fields.pop(CHECK)
        return bool(noted == _of(fields))
    last = next(reversed(fields), "")
    return False if _NEARLY_A_FIELD.fullmatch(last) else None


def _of(fields: dict[str, Any]) -> str:
    return f"{crc32(_indented(fields)):08x}"


def _indented(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)


def sealed_text(text: bytes) -> bytes:
    """A text whose comments begin with `#`, with its checksum as a last line."""
    return text + _TEXT_SEAL % crc32(text)


def check_text(text: bytes) -> bool | None:
    """Whether such a text is as it was written."""
    start = text.rfind(b"\n", 0, -1) + 1
    last = text[start:]
    if last == _TEXT_SEAL % crc32(text[:start]):
        return True
    return False if last.startswith(b"# check:") or _NEARLY_A_TEXT.search(last) else None


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_PARQUET_SEAL = re.compile(rb"\nreward-kit check:([0-9a-f]{8}):([0-9a-f]{8})\n")
_PARQUET_SEAL_BYTES = len(b"\nreward-kit check:12345678:12345678\n")
_LONGEST_FOOTER = 64 << 20
_AT_ONCE = 1 << 20
_PARQUET_END = 8
"""The footer's length in four bytes, and PAR1."""


def seal_parquet(path: Path) -> None:
    """Put checksums into a Parquet file that was just written."""
    with path.open("r+b") as file:
        start, footer = _footer(file)
        seal = b"\nreward-kit check:%08x:%08x\n" % (crc32(footer), _crc_of_first(file, start))
        file.seek(start)
        file.write(seal + footer)


def check_parquet(path: Path, *, pages: bool = False) -> bool | None:
    """Whether a Parquet file is as it was written: its footer, for pages have checksums of their own; or all of it.

    To be asked before the file is read: a damaged footer can end the process that reads it.
    """
    with path.open("rb") as file:
        start, footer = _footer(file)
        seal_start = max(0, start - _PARQUET_SEAL_BYTES)
        file.seek(seal_start)
        seal = _PARQUET_SEAL.fullmatch(file.read(start - seal_start))
        if seal is not None:
            whole = int(seal[1], 16) == crc32(footer)
            return whole and (not pages or int(seal[2], 16) == _crc_of_first(file, seal_start))
        # None in its place: there was never one, or what says where the footer begins is damaged.
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_FOOTER))
        return False if _PARQUET_SEAL.search(file.read()) else None


def _footer(file: IO[bytes]) -> tuple[int, bytes]:
    """Where the footer begins, by what the file says of its length, and all bytes from there on."""
    size = os.fstat(file.fileno()).st_size
    file.seek(max(0, size - _PARQUET_END))
    length = int.from_bytes(file.read(4), "little") + _PARQUET_END
    start = max(0, size - length)
    file.seek(start)
    return start, file.read()


def _crc_of_first(file: IO[bytes], length: int) -> int:
    file.seek(0)
    crc = 0
    while length > 0 and (part := file.read(min(length, _AT_ONCE))):
        crc = crc32(part, crc)
        length -= len(part)
    return crc
