# SPDX-License-Identifier: Apache-2.0
"""Files as one archive whose bytes depend on nothing but their names and contents: not on time, user or machine."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["digest_of", "files_in", "write_files", "zip_of"]

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can name."""
_READABLE = 0o100644 << 16
_EXECUTABLE = 0o100755 << 16


def zip_of(files: Mapping[str, bytes], *, executable: frozenset[str] = frozenset()) -> bytes:
    """A zip of the files, by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # Unix, wherever this runs
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _EXECUTABLE if name in executable else _READABLE
            archive.writestr(entry, files[name], compresslevel=6)
    return buffer.getvalue()


def digest_of(files: Mapping[str, bytes]) -> str:
    """The sha256 (hex) of names and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path from there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files into a folder of their own, where nothing else stays."""
    for name in sorted(files):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
    if folder.is_dir():
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in files:
                path.unlink()
