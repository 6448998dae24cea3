# SPDX-License-Identifier: Apache-2.0
"""Reading what was asked and answered, for single rows: texts are long, and few of them are ever looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reward_kit.errors import StorageError
from reward_kit.storage.vocabularies import TEXTS, Field, find_columns
from reward_kit.utils import exact_json

__all__ = ["JsonLines", "Loaded", "ParquetTexts", "Texts", "one_line", "spoken"]

_DATASET = "columns"
"""The column that holds what else the dataset's row had."""
_ENOUGH = 256 * 2**20
"""Bytes of text that are read at most to work out a figure."""


class Texts(Protocol):
    """The texts of an experiment."""

    def take(self, fields: Iterable[Field], rows: NDArray[np.int64]) -> dict[Field, list[Any]]:
        """The texts of some rows of the source, for the fields it has."""

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """Ranges of rows, spread over the source, whose texts can be read without reading gigabytes."""

    def column(self, name: str, rows: NDArray[np.int64]) -> list[Any] | None:
        """What some rows hold in a column of any name, the dataset's own included; None where there is none."""

    def column_names(self) -> list[str]:
        """The columns that `column` knows, those of the dataset first; as far as the first row shows them."""

    def whole(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Some rows with everything they hold, as plain values."""

    def columns_among(self, names: Collection[str], rows: NDArray[np.int64]) -> pa.Table | None:
        """Some rows of those of a table's columns that are among `names`; None where there is no table."""


class Loaded:
    """Texts of a table that is in memory."""

    def __init__(self, table: pa.Table) -> None:
        """Keep the table; nothing is copied."""
        self._table = table
        self._columns = find_columns(TEXTS, table.column_names)

    def take(self, fields: Iterable[Field], rows: NDArray[np.int64]) -> dict[Field, list[Any]]:
        """Take the rows out of the table."""
        wanted = {field: self._columns[field] for field in fields if field in self._columns}
        chosen = self._table.select(list(wanted.values())).take(rows)
        return {field: chosen[name].to_pylist() for field, name in wanted.items()}

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """All of it: it is in memory."""
        return [(0, self._table.num_rows)] if field in self._columns else []

    def column(self, name: str, rows: NDArray[np.int64]) -> list[Any] | None:
        """Take it out of the table, or out of its column of the dataset's columns."""
        held = self._table.column_names
        if name in held:
            return self._table[name].take(rows).to_pylist()
        return _of_dataset(self._table[_DATASET].take(rows).to_pylist(), name) if _DATASET in held else None

    def column_names(self) -> list[str]:
        """The table's own, and those of its dataset."""
        first = self._table[_DATASET][:1].to_pylist() if _DATASET in self._table.column_names else []
        return [*_dataset_names(first), *self._table.column_names]

    def whole(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Take the rows out of the table."""
        return self._table.take(rows).to_pylist()

    def columns_among(self, names: Collection[str], rows: NDArray[np.int64]) -> pa.Table | None:
        """Take them out of the table."""
        return self._table.select([name for name in self._table.column_names if name in names]).take(rows)


class ParquetTexts:
    """Texts of a Parquet file, read by row group."""

    def __init__(self, path: Path) -> None:
        """Look at the footer; read nothing yet."""
        self._path = path
        self._footer = pq.read_metadata(path)
        self._columns = find_columns(TEXTS, self._footer.schema.to_arrow_schema().names)
        groups = range(self._footer.num_row_groups)
        self._ends = np.cumsum([self._footer.row_group(group).num_rows for group in groups])

    def take(self, fields: Iterable[Field], rows: NDArray[np.int64]) -> dict[Field, list[Any]]:
        """Read the row groups that hold the rows."""
        wanted = {field: self._columns[field] for field in fields if field in self._columns}
        found: dict[Field, list[Any]] = {field: [None] * len(rows) for field in wanted}
        group_of = np.searchsorted(self._ends, rows, side="right")
        with self._opened() as file:
            for group in np.unique(group_of):
                places = np.flatnonzero(group_of == group)
                first = self._ends[group] - self._footer.row_group(int(group)).num_rows
                table = file.read_row_group(int(group), columns=list(wanted.values()))
                chosen = table.take(rows[places] - first)
                for field, name in wanted.items():
                    for place, value in zip(places, chosen[name].to_pylist(), strict=True):
                        found[field][place] = value
        return found

    @contextlib.contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        try:
            with pq.ParquetFile(self._path, metadata=self._footer, page_checksum_verification=True) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise StorageError(
                f"{str(self._path)!r} is damaged, or has changed since it was opened ({error}). Make it again, or "
                "restore it."
            ) from error

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

    def column(self, name: str, rows: NDArray[np.int64]) -> list[Any] | None:
        """Read the whole column: it is asked for all queries."""
        held = self._footer.schema.to_arrow_schema().names
        wanted = name if name in held else _DATASET
        if wanted not in held:
            return None
        with self._opened() as file:
            values = file.read(columns=[wanted])[wanted].take(rows).to_pylist()
        return values if wanted == name else _of_dataset(values, name)

    def column_names(self) -> list[str]:
        """The file's own, and those of its dataset."""
        held = self._footer.schema.to_arrow_schema().names
        first = self.column(_DATASET, np.zeros(1, dtype=np.int64)) if _DATASET in held else None
        return [*_dataset_names(first or []), *held]

    def whole(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Read the row groups that hold the rows."""
        return self._taken(None, rows).to_pylist()

    def columns_among(self, names: Collection[str], rows: NDArray[np.int64]) -> pa.Table | None:
        """Read these columns of the row groups that hold the rows."""
        return self._taken([name for name in self._footer.schema.to_arrow_schema().names if name in names], rows)

    def _taken(self, columns: list[str] | None, rows: NDArray[np.int64]) -> pa.Table:
        group_of = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(group_of, kind="stable")
        with self._opened() as file:
            parts = [
                file.schema_arrow.empty_table() if columns is None else file.schema_arrow.empty_table().select(columns)
            ]
            for group in np.unique(group_of):
                first = self._ends[group] - self._footer.row_group(int(group)).num_rows
                held = file.read_row_group(int(group), columns=columns)
                parts.append(held.take(rows[order[group_of[order] == group]] - first))
        return pa.concat_tables(parts).take(np.argsort(order, kind="stable"))

    def _bytes(self, group: int, column: str) -> int:
        chunks = self._footer.row_group(group)
        parts = (chunks.column(index) for index in range(chunks.num_columns))
        return sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] == column)


class JsonLines:
    """Texts of a file of JSON lines, read by their offsets."""

    def __init__(self, path: Path, offsets: NDArray[np.int64]) -> None:
        """Know where each line begins."""
        self._path = path
        self._offsets = offsets

    def take(self, fields: Iterable[Field], rows: NDArray[np.int64]) -> dict[Field, list[Any]]:
        """The values of these fields in these rows. Each line is read from the file again."""
        found: dict[Field, list[Any]] = {field: [None] * len(rows) for field in fields if field in TEXTS}
        with self._path.open("rb") as file:
            for place in np.argsort(rows, kind="stable"):
                file.seek(int(self._offsets[rows[place]]))
                line = exact_json.loads(file.readline())
                for field, texts in found.items():
                    texts[place] = _of_line(line, field)
        return found

    def affordable(self, field: Field) -> list[tuple[int, int]]:
        """All of it: lines are read one by one."""
        return [(0, len(self._offsets))] if field in TEXTS else []

    def column(self, name: str, rows: NDArray[np.int64]) -> list[Any] | None:
        """The values of one column in these rows, read from the file again; None where no line has the column."""
        lines = self.whole(rows)
        if not any(name in line or name in _own_columns(line) for line in lines):
            return None
        return [line[name] if name in line else _own_columns(line).get(name) for line in lines]

    def column_names(self) -> list[str]:
        """Those of the dataset, as the first line holds them."""
        (first,) = self.whole(np.zeros(1, dtype=np.int64))
        return [*_own_columns(first), *(name for name in first if name != _DATASET)]

    def columns_among(self, names: Collection[str], rows: NDArray[np.int64]) -> pa.Table | None:
        """There is no table."""

    def whole(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Read the lines."""
        with self._path.open("rb") as file:
            return [exact_json.loads(_line_at(file, int(self._offsets[row]))) for row in rows]


def _line_at(file: BinaryIO, offset: int) -> bytes:
    file.seek(offset)
    return file.readline()


def _own_columns(line: Mapping[str, Any]) -> dict[str, Any]:
    """The dataset's columns in a line: a mapping, or the text of one."""
    return _mapping(line.get(_DATASET))


def _mapping(held: Any) -> dict[str, Any]:
    if isinstance(held, str):
        try:
            held = exact_json.loads(held)
        except exact_json.JSONDecodeError:
            return {}
    return held if isinstance(held, dict) else {}


def _of_dataset(values: list[Any], name: str) -> list[Any] | None:
    """One of the dataset's columns; None where no row has it."""
    rows = [_mapping(value) for value in values]
    return [row.get(name) for row in rows] if any(name in row for row in rows) else None


def _dataset_names(values: list[Any]) -> list[str]:
    return [name for value in values for name in _mapping(value)]


def _of_line(line: Mapping[str, Any], field: Field) -> Any:
    return next((line[name] for name in TEXTS[field] if line.get(name) is not None), None)


def _as_json(value: Any) -> str:
    return str(exact_json.dumps(value, default=str), "utf-8")


def one_line(value: Any, width: int) -> str:
    """A text, or the messages of a conversation, in one line that is no longer than `width`."""
    text = " ".join(spoken(value).split())
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…"


def spoken(value: Any) -> str:
    """What is said in a value: a text as it is; of messages, also as JSON, what the user said last."""
    if isinstance(value, str):
        if not value.startswith(("[{", '{"')):
            return value
        try:
            value = exact_json.loads(text := value)
        except exact_json.JSONDecodeError:
            return text
    if isinstance(value, list) and value and all(isinstance(turn, dict) for turn in value):
        questions = [turn for turn in value if turn.get("role") == "user"] or value
        content = questions[-1].get("content")
        return content if isinstance(content, str) else _as_json(content)
    return "" if value is None else str(value)
