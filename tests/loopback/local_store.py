# SPDX-License-Identifier: Apache-2.0
"""An object store in a directory, `kept:///home/…`, for many short processes: an object is there whole, or not at all.

Importing this makes it known to fsspec.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

__all__ = ["Kept"]


class Kept(LocalFileSystem):  # type: ignore[misc]
    """Files that appear under their names when they are complete."""

    protocol = "kept"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(LocalFileSystem._strip_protocol(str(path).replace("kept://", "file://", 1)))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self._put(path, lambda draft: draft.write_bytes(value), os.link if mode == "create" else os.replace)

    def put_file(self, lpath: str, rpath: str, callback: Any = None, **_: Any) -> None:
        self._put(rpath, lambda draft: shutil.copyfile(lpath, draft))

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self._put(path2, lambda draft: shutil.copyfile(self._strip_protocol(path1), draft))

    def _put(self, path: str, fill: Callable[[Path], Any], keep: Callable[[Path, Path], Any] = os.replace) -> None:
        whole = Path(self._strip_protocol(path))
        whole.parent.mkdir(parents=True, exist_ok=True)
        draft = whole.with_name(f".{uuid.uuid4().hex}")
        fill(draft)
        keep(draft, whole)
        draft.unlink(missing_ok=True)


fsspec.register_implementation("kept", Kept, clobber=True)
