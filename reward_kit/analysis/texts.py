# SPDX-License-Identifier: Apache-2.0
"""Reading what was asked and answered, for single rows: texts are long, and few of them are ever looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reward_kit.errors import StorageError
from reward_kit.storage.judged import JudgedAnswer, excerpt, parsed, spoken
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.storage.vocabularies import TEXTS, Field, find_columns

__all__ = ["JsonLines", "Loaded", "ParquetTexts", "Rows", "Texts", "one_line"]

Rows = NDArray[np.int64]
"""Rows by their place in the source."""
_DATASET = "columns"
"""The column that holds what else the dataset's row had."""
_ENOUGH = 256 * 2**20
"""Bytes of text that are read at most to work out a figure."""


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Loaded:
    """Texts of a table that is in memory."""

    def __init__(self, table: pa.Table) -> None:
        """Keep the table; nothing is copied."""
        self._table = table
        self._set_names(table.column_names)

    def _set_names(self, names: list[str]) -> None:
        self._names = names
        self._columns = find_columns(TEXTS, names)

    def _taken(self, names: list[str], rows: Rows) -> pa.Table:
        return self._table.select(names).take(rows)

    def take(self, fields: Iterable[Field], rows: Rows) -> dict[Field, list[Any]]:
        """The texts of some rows of the source, for the fields it has."""
        wanted = {field: self._columns[field] for field in fields if field in self._columns}
        chosen = self._taken([*wanted.values()], rows)
        return {field: chosen[name].to_pylist() for field, name in wanted.items()}

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """Ranges of rows, spread over the source, whose texts can be read without reading gigabytes."""
        return [(0, self._table.num_rows)] if field in self._columns else []

    def column(self, name: str, rows: Rows) -> list[Any] | None:
        """What some rows hold in a column of any name, the dataset's own included; None where there is none."""
        held = name if name in self._names else _DATASET
        if held not in self._names:
            return None
        values = self._taken([held], rows)[held].to_pylist()
        return values if held == name else _of_dataset([_mapping(value) for value in values], name)

    def column_names(self) -> list[str]:
        """The columns that `column` knows, those of the dataset first; as far as the first row shows them."""
        (first,) = self.column(_DATASET, np.zeros(1, dtype=np.int64)) or [None]
        return [*_mapping(first), *self._names]

    def whole(self, rows: Rows) -> list[dict[str, Any]]:
        """Some rows with everything they hold, as plain values; bytes that are not UTF-8 are replaced."""
        table = self._taken(self._names, rows)
        try:
            return table.to_pylist()
        except UnicodeDecodeError:
            plain = [_decoded(table[name]) for name in table.column_names]
            return [dict(zip(table.column_names, row, strict=True)) for row in zip(*plain, strict=True)]

    def columns_among(self, names: Collection[str], rows: Rows) -> pa.Table | None:
        """Some rows of those of the table's columns that are among `names`."""
        return self._taken([name for name in self._names if name in names], rows)


class ParquetTexts(Loaded):
    """Texts of a Parquet file, read by row group."""

    def __init__(self, path: Path) -> None:
        """Look at the footer; read nothing yet."""
        self._path = path
        self._footer = pq.read_metadata(path)
        self._set_names(self._footer.schema.to_arrow_schema().names)
        groups = range(self._footer.num_row_groups)
        self._ends = np.cumsum([self._footer.row_group(group).num_rows for group in groups])

    def _taken(self, names: list[str], rows: Rows) -> pa.Table:
        group_of = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(group_of, kind="stable")
        try:
            with pq.ParquetFile(self._path, metadata=self._footer, page_checksum_verification=True) as file:
                parts = [file.schema_arrow.empty_table().select(names)]
                for group in np.unique(group_of).tolist():
                    first = self._ends[group] - self._footer.row_group(group).num_rows
                    held = file.read_row_group(group, columns=names)
                    parts.append(held.take(rows[order[group_of[order] == group]] - first))
        except (pa.ArrowException, OSError) as error:
            raise StorageError(
                f"{str(self._path)!r} is damaged, or has changed since it was opened ({error}). Make it again, or "
                "restore it."
            ) from error
        found = pa.concat_tables(parts)
        return found if (order[1:] > order[:-1]).all() else found.take(np.argsort(order, kind="stable"))

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """Row groups drawn at random, so that whatever order the file is in they speak for all of it."""
        if field not in self._columns:
            return []
        drawn: list[tuple[int, int]] = []
        spent = 0
        for group in np.random.default_rng(0).permutation(len(self._ends)):
            size = self._bytes(int(group), self._columns[field])
            if drawn and spent + size > _ENOUGH:
                break
            spent += size
            end = int(self._ends[group])
            drawn.append((end - self._footer.row_group(int(group)).num_rows, end))
        return sorted(drawn)

    def _bytes(self, group: int, column: str) -> int:
        chunks = self._footer.row_group(group)
        parts = (chunks.column(index) for index in range(chunks.num_columns))
        return sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] == column)


def _decoded(column: pa.ChunkedArray[Any]) -> list[Any]:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return list(column.to_pylist())
    held: Any = column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())
    return [None if value is None else value.decode("utf-8", "replace") for value in held.to_pylist()]


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class JsonLines:
    """Texts of a file of JSON lines, read by their offsets."""

    def __init__(self, path: Path, offsets: Rows) -> None:
        """Know where each line begins."""
        self._path = path
        self._offsets = offsets
        self._samples = Samples(path.with_name(SAMPLES), read_only=True)

    def _opened(self) -> BinaryIO:
        return self._path.open("rb")

    def _each(self, rows: Rows, *, whole: bool = True) -> Iterator[JudgedAnswer]:
        """The answers in these rows, read from the file again; `whole`: with large parts of what was asked."""
        with self._opened() as file:
            for row in rows.tolist():
                file.seek(int(self._offsets[row]))
                yield JudgedAnswer.of_line(file.readline(), self._samples if whole else None)

    def take(self, fields: Iterable[Field], rows: Rows) -> dict[Field, list[Any]]:
        """The values of these fields in these rows, which are read in the order of the file."""
        found: dict[Field, list[Any]] = {field: [None] * len(rows) for field in fields if field in TEXTS}
        order = np.argsort(rows, kind="stable")
        whole = not found.keys().isdisjoint(("query", "ground_truth"))
        for place, answer in zip(order.tolist(), self._each(rows[order], whole=whole), strict=True):
            for field, texts in found.items():
                texts[place] = answer.field(field)
        return found

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """All of it: lines are read one by one."""
        return [(0, len(self._offsets))] if field in TEXTS else []

    def column(self, name: str, rows: Rows) -> list[Any] | None:
        """The values of one column in these rows; None where no line has the column."""
        return _of_dataset([_mapping(row.get(_DATASET)) | row for row in self.whole(rows)], name)

    def column_names(self) -> list[str]:
        """Those of the dataset, as the first line holds them."""
        (first,) = self.whole(np.zeros(1, dtype=np.int64))
        return [*_mapping(first.get(_DATASET)), *(name for name in first if name != _DATASET)]

    def columns_among(self, names: Collection[str], rows: Rows) -> pa.Table | None:
        """There is no table."""

    def whole(self, rows: Rows) -> list[dict[str, Any]]:
        """Read the lines."""
        return [dict(answer.row) for answer in self._each(rows)]


Texts = Loaded | JsonLines
"""The texts of an experiment."""


def _mapping(held: Any) -> dict[str, Any]:
    """The dataset's columns: a mapping, or the text of one."""
    found = parsed(held)
    return found if isinstance(found, dict) else {}


def _of_dataset(rows: list[dict[str, Any]], name: str) -> list[Any] | None:
    """One of the dataset's columns; None where no row has it."""
    return [row.get(name) for row in rows] if any(name in row for row in rows) else None


def one_line(value: Any, width: int) -> str:
    """A text, or the messages of a conversation, in one line that is no longer than `width`."""
    return excerpt(spoken(value), width)
