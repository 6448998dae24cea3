# SPDX-License-Identifier: Apache-2.0
"""Large parts of a sample in the lines of `results.jsonl`: named by digest, so that n answers do not repeat them.

    {…, "sample":"5f…", "user_query":"sha256:9c…", "messages":[{"role":"user","content":"sha256:9c…"}, …], …}

Such a line names its sample; the columns of that are what the parts were taken from. All other lines are whole. Lines
of `reward-kit shell` are whole always: they hold what its commands file does, which people write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from reward_kit.models import Sample
from reward_kit.storage.best_of_n_tables import experiment_columns
from reward_kit.storage.journal import Journal
from reward_kit.storage.row_json import as_plain, json_text
from reward_kit.storage.samples import LARGE, Samples
from reward_kit.storage.tables import sample_columns
from reward_kit.storage.vocabularies import BEST_OF_N, RUN, vocabulary_of

__all__ = ["short_columns", "short_row", "whole_row", "whole_rows"]


_COLUMNS: dict[str, Callable[[Sample], dict[str, Any]]] = {
    RUN.name: sample_columns,
    BEST_OF_N.name: experiment_columns,
}
"""What the lines of a vocabulary tell of their sample."""


def short_row(row: dict[str, Any], sample: Sample, name: bytes) -> dict[str, Any]:
    """A row of results that names its sample, and large parts of it by their digests."""
    columns_of = _COLUMNS.get(vocabulary_of(row).name)
    return row if columns_of is None else {"sample": name.decode(), **_with(row, short_columns(columns_of(sample)))}


def whole_row(row: Any, samples: Samples) -> Any:
    """A row of results or of rollouts with what it names in `samples`; anything else as it is."""
    name = row.get("sample") if isinstance(row, dict) else None
    columns_of = _COLUMNS.get(vocabulary_of(row).name) if isinstance(name, str) else None
    if columns_of is None:
        return row
    sample = samples.sample(str(name).encode(), row["position"])
    if "turns" in row:
        return row | {"sample": sample.model_dump(exclude_none=True)}
    return _with({name: held for name, held in row.items() if name != "sample"}, columns_of(sample))


def whole_rows(journal: Journal) -> Iterator[dict[str, Any]]:
    """The rows of a journal in order, with what they name of their samples."""
    return (whole_row(row, journal.samples) for row in journal.rows())


def short_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of a sample, large parts named by their digests. A list of messages stays one."""
    return {name: _short(held) if name == "messages" else _short_column(held) for name, held in columns.items()}


def _with(row: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """The row with these columns of its sample, whose messages are the first of the row's."""
    messages = columns.get("messages")
    if isinstance(messages, list):
        columns = {**columns, "messages": [*messages, *row["messages"][len(messages) :]]}
    return row | columns


def _short_column(value: Any) -> Any:
    short = {name: _short_column(held) for name, held in value.items()} if isinstance(value, dict) else _short(value)
    if isinstance(short, dict | list) and len(text := json_text(short)) * 4 > LARGE:
        return _name(text) if len(_bytes(text)) > LARGE else short
    return short


def _short(value: Any) -> Any:
    if isinstance(value, str):
        is_large = len(value) * 4 > LARGE and len(_bytes(value)) > LARGE
        return _name(value) if is_large or value.startswith("data:image/") else value
    if isinstance(value, BaseModel):
        value = as_plain(value)
    if isinstance(value, dict):
        return {name: _short(held) for name, held in value.items()}
    return [*map(_short, value)] if isinstance(value, list | tuple) else value


def _name(text: str) -> str:
    return f"sha256:{hashlib.sha256(_bytes(text)).hexdigest()}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
