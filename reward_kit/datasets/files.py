# SPDX-License-Identifier: Apache-2.0
"""Which files a dataset's path means, here or in an object store, and how they are opened, counted and recognised."""

from __future__ import annotations

import difflib
import glob
import gzip
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from reward_kit.errors import DatasetError, needs_extra
from reward_kit.stores.addresses import is_stored
from reward_kit.stores.objects import StoredObject, objects_at
from reward_kit.stores.reasons import StoreError

__all__ = [
    "DataFile", "DatasetNotFoundError", "Format", "count_lines", "file_format", "files_below", "files_in",
    "files_of", "fingerprint", "open_bytes",
]  # fmt: skip


DataFile = Path | StoredObject
"""A file of this machine, or an object of a store."""

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


def file_format(path: str | DataFile) -> Format | None:
    """The format that the suffix of `path` names; a `.gz` or `.zst` behind it is looked through."""
    return _SUFFIXES.get(Path(str(path).removesuffix(".gz").removesuffix(".zst")).suffix.lower())


def files_of(path: str, options: Mapping[str, Any] | None = None) -> list[DataFile]:
    """The files that `path` means: itself, the data files in a directory, or what a glob matches, in sorted order.

    `options` are for the store that an address is in.
    """
    return [*_stored_files(path, options)] if is_stored(path) else [*_local_files(path)]


def _stored_files(address: str, options: Mapping[str, Any] | None) -> list[StoredObject]:
    try:
        found = objects_at(address, options)
    except StoreError as error:
        raise DatasetError(f"Cannot look into {address!r}: {error}. {_CHECK_STORE}") from error
    if len(found) == 1 and str(found[0]).rstrip("/") == address.rstrip("/"):
        return found
    files = [one for one in found if file_format(one)]
    if not files:
        problem = "holds no data files" if found else "does not exist, or matches nothing"
        raise DatasetNotFoundError(f"{address!r} {problem}. {_CHECK_STORE}")
    return files


_CHECK_STORE = (
    "Correct `dataset.path_or_name`, or check your access rights and credentials: the store's own environment "
    "variables, or `dataset.storage_options`."
)


def _local_files(path: str) -> list[Path]:
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


def files_in(folder: str, options: Mapping[str, Any] | None = None) -> list[DataFile]:
    """The data files directly in a folder, in sorted order; none where it is not a folder."""
    if is_stored(folder):
        try:
            found = objects_at(folder, options)
        except StoreError as error:
            raise DatasetError(f"Cannot look into {folder!r}: {error}. {_CHECK_STORE}") from error
        return [one for one in found if file_format(one) and str(one).rstrip("/") != folder.rstrip("/")]
    place = Path(folder).expanduser()
    if not place.is_dir():
        return []
    return [*sorted(entry for entry in place.iterdir() if entry.is_file() and file_format(entry))]


def files_below(folder: str, options: Mapping[str, Any] | None = None) -> list[DataFile]:
    """The data files in a folder and in those inside of it, hidden ones left out; none where it is not a folder."""
    if is_stored(folder):
        direct = files_in(folder, options)
        deeper = [one for one in _stored_matches(f"{folder.rstrip('/')}/**", options) if file_format(one)]
        return sorted({str(one): one for one in (*direct, *deeper)}.values(), key=str)
    place = Path(folder).expanduser()
    found = (one for one in sorted(place.rglob("*")) if file_format(one) and one.is_file())
    return [one for one in found if not any(_HIDDEN.match(part) for part in one.relative_to(place).parts)]


def _stored_matches(address: str, options: Mapping[str, Any] | None) -> list[StoredObject]:
    try:
        return objects_at(address, options)
    except StoreError as error:
        raise DatasetError(f"Cannot look into {address!r}: {error}. {_CHECK_STORE}") from error


_HIDDEN = re.compile(r"\.|__")


def open_bytes(path: DataFile) -> BinaryIO:
    """The bytes of a file, decompressed where its name ends in `.gz` or `.zst`."""
    try:
        unpack = _UNPACKED.get(path.suffix)
        if unpack is not None:
            return unpack(path)
        return path.open("rb", _CHUNK) if isinstance(path, Path) else path.open()
    except OSError as error:
        raise DatasetError(f"Cannot read {str(path)!r}: {error.strerror or error}. Make it readable.") from error


def _gunzip(packed: DataFile) -> BinaryIO:
    return cast(BinaryIO, gzip.open(packed if isinstance(packed, Path) else packed.open(), "rb"))


def _unzstd(packed: DataFile) -> BinaryIO:
    """Zstandard is in no standard library before Python 3.14; Arrow has it."""
    with needs_extra("Reading a .zst file", "parquet"):
        import pyarrow as pa
    source = str(packed) if isinstance(packed, Path) else cast(io.IOBase, packed.open())
    return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(source, "zstd"), _CHUNK))


_UNPACKED: dict[str, Callable[[DataFile], BinaryIO]] = {".gz": _gunzip, ".zst": _unzstd}


def count_lines(paths: Iterable[DataFile], up_to: int | None = None) -> int | None:
    """How many lines the files have, as fast as they can be read; None when one is compressed or in a store.

    Counting stops soon after `up_to`.
    """
    total = 0
    for path in paths:
        if path.suffix in _UNPACKED or not isinstance(path, Path):
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


def fingerprint(paths: Iterable[DataFile]) -> str | None:
    """A digest of the files' paths, sizes and times: it changes when one of them does.

    Of an object the store tells a version, such as its ETag; None where one has none.

    Anybody can set the modification time back, as tools that copy files do. The time of the last change, which counts
    here too, nobody can.
    """
    digest = hashlib.sha256()
    for path in paths:
        if isinstance(path, StoredObject):
            if path.facts.version is None:
                return None
            digest.update(f"{path}\0{path.facts.size}\0{path.facts.version}\n".encode())
            continue
        status = path.stat()
        facts = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}\n"
        digest.update(facts.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]
