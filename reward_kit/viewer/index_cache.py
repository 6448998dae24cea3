# SPDX-License-Identifier: Apache-2.0
"""What was read of a large results.jsonl, kept in the user's cache directory: the next look reads only what is new.

$XDG_CACHE_HOME/reward-kit/viewer/KEY.parquet     a row per answer: its figures, and where its line begins

Nothing is ever written into a run directory. An index belongs to one file: to its inode, to the bytes just before the
place up to which it was read, and to the thresholds its verdicts were made with. One that does not fit, or is damaged,
is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reward_kit.storage.thresholds import thresholds_of
from reward_kit.utils.checksums import check_parquet, seal_parquet
from reward_kit.viewer.store import FileIdentity

__all__ = ["Index", "cache_folder", "load_index", "save_index"]

_FORMAT = 2
_OFFSET = "__offset"
_FACTS = b"reward_kit_index"
_TAIL = 4096
_MOST_INDEXES = 64


class Index(NamedTuple):
    """What a reader knew of a file."""

    table: pa.Table
    offsets: NDArray[np.int64]
    position: int
    lines: int


def cache_folder() -> Path:
    """Where indexes are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "reward-kit" / "viewer"


def load_index(key: str, results: Path) -> Index | None:
    """The index of a file of results; None where there is none that fits."""
    path = cache_folder() / f"{key}.parquet"
    try:
        if check_parquet(path, pages=True) is not True:
            return None
        table = pq.read_table(path)
        facts = orjson.loads((table.schema.metadata or {})[_FACTS])
        position, lines = int(facts["position"]), int(facts["lines"])
        if facts != _facts(results, position, lines):
            return None
        offsets = table[_OFFSET].to_numpy().astype(np.int64)
        os.utime(path)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None
    return Index(table.drop_columns([_OFFSET]).replace_schema_metadata(None), offsets, position, lines)


def save_index(key: str, results: Path, index: Index) -> None:
    """Keep an index; where that is not possible, the next look reads everything again."""
    folder = cache_folder()
    with contextlib.suppress(OSError, pa.ArrowException):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = orjson.dumps(_facts(results, index.position, index.lines))
        table = index.table.append_column(_OFFSET, pa.array(index.offsets)).replace_schema_metadata({_FACTS: facts})
        draft = folder / f"{key}.{os.getpid()}.writing"
        try:
            pq.write_table(table, draft, compression="zstd")
            seal_parquet(draft)
            draft.replace(folder / f"{key}.parquet")
        finally:
            draft.unlink(missing_ok=True)
        _remove_oldest(folder)


def _facts(results: Path, position: int, lines: int) -> dict[str, Any]:
    """What an index must agree with."""
    with results.open("rb") as file:
        identity = FileIdentity.of_stat(os.fstat(file.fileno()))
        file.seek(max(0, position - _TAIL))
        tail = file.read(min(_TAIL, position))
    thresholds = thresholds_of(results.parent)
    return {
        "format": _FORMAT,
        "file": [identity.device, identity.inode],
        "position": position,
        "lines": lines,
        "tail": hashlib.sha256(tail).hexdigest(),
        "thresholds": [thresholds.whole, dict(thresholds.by_split), thresholds.given],
    }


def _remove_oldest(folder: Path) -> None:
    kept = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in kept[_MOST_INDEXES:]:
        path.unlink(missing_ok=True)
