# SPDX-License-Identifier: Apache-2.0
"""`load_jsonl`, at the import path that users of the public package have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reward_kit.datasets.files import files_of
from reward_kit.datasets.rows import BadRows
from reward_kit.datasets.sources import JsonlSource

__all__ = ["load_jsonl"]


def load_jsonl(file_path: str | Path) -> list[dict[str, Any]]:
    """Every object of a JSON lines file (or glob, plain or `.gz`); a line that is not one is a `DatasetError`."""
    return [row.columns for row in JsonlSource(files_of(str(file_path))).rows(BadRows(skip=False))]
