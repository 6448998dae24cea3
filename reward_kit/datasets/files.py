# SPDX-License-Identifier: Apache-2.0
"""Which files a dataset's path means, and how they are opened, counted and recognised."""

from __future__ import annotations

import difflib
import glob
import gzip
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Literal, cast

from reward_kit.errors import DatasetError

__all__ = ["DatasetNotFoundError", "Format", "count_lines", "file_format", "files_of", "fingerprint", "open_bytes"]


Format = Literal["jsonl", "csv", "parquet"]
"""How a file is read."""

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_CHUNK = 1 << 20


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """There is no such file."""


def file_format(path: str | Path) -> Format | None:
    """The format that the suffix of `path` names; a `.gz` behind it is looked through."""
    return _SUFFIXES.get(Path(str(path).removesuffix(".gz")).suffix.lower())


def files_of(path: str) -> list[Path]:
    """The files that `path` means: itself, the data files in a directory, or what a glob matches, in sorted order."""
    whole = Path(path).expanduser()
    if whole.is_file():
        return [whole]
    if whole.is_dir():
        files = sorted(entry for entry in whole.iterdir() if entry.is_file() and file_format(entry))
        problem = f"The directory {path!r} holds no data files ({', '.join(sorted(_SUFFIXES))})"
    else:
        files = sorted(Path(match) for match in glob.glob(str(whole), recursive=True) if os.path.isfile(match))
        problem = f"No file matches {path!r}" if glob.has_magic(path) else f"There is no file {path!r}{_near(whole)}"
    if not files:
        raise DatasetNotFoundError(
            f"{problem}. Correct `dataset.path_or_name`; relative paths start in {os.getcwd()!r}."
        )
    return files


def _near(path: Path) -> str:
    """The files nearest to a missing one, in words."""
    folder = path.parent
    if not folder.is_dir():
        return f", nor a directory {str(folder)!r}"
    nearest = difflib.get_close_matches(path.name, os.listdir(folder), n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(repr(str(folder / name)) for name in nearest)}?)" if nearest else ""


def open_bytes(path: Path) -> BinaryIO:
    """The bytes of a file, decompressed where its name ends in `.gz`."""
    try:
        return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb", _CHUNK)
    except OSError as error:
        raise DatasetError(f"Cannot read {str(path)!r}: {error.strerror or error}. Make it readable.") from error


def count_lines(paths: Iterable[Path], up_to: int | None = None) -> int | None:
    """How many lines the files have, as fast as they can be read; None when one is compressed.

    Counting stops soon after `up_to`.
    """
    total = 0
    for path in paths:
        if path.suffix == ".gz":
            return None
        if up_to is not None and total >= up_to:
            break
        total += _lines(path, None if up_to is None else up_to - total)
    return total


def _lines(path: Path, up_to: int | None) -> int:
    total, last = 0, b"\n"
    with open_bytes(path) as file:
        while (up_to is None or total < up_to) and (chunk := file.read(_CHUNK)):
            total += chunk.count(b"\n")
            last = chunk[-1:]
    return total + (last != b"\n")


def fingerprint(paths: Iterable[Path]) -> str:
    """A digest of the files' paths, sizes and times: it changes when one of them does.

    Anybody can set the modification time back, as tools that copy files do. The time of the last change, which counts
    here too, nobody can.
    """
    digest = hashlib.sha256()
    for path in paths:
        status = path.stat()
        facts = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n"
        digest.update(facts.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]
