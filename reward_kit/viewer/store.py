# SPDX-License-Identifier: Apache-2.0
"""The files behind a table: texts of the rows that are shown, columns that somebody sorts by, and a scan of all texts.

Narrow columns are in memory (`columns.py`); a long text is read only when its row is shown, or looked through when
somebody searches. A scan goes on in parts, so that its first hits can be shown and it can be ended between them.

    Lines     a results.jsonl, read at the offsets of its lines
    TableFile a Parquet file, read by DuckDB
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from reward_kit.analysis.texts import JsonLines, ParquetTexts, Rows
from reward_kit.storage.best_of_n_tables import refuse_damaged_parquet
from reward_kit.storage.judged import JudgedAnswer, as_text
from reward_kit.storage.vocabularies import TEXTS, find_columns
from reward_kit.utils import exact_json
from reward_kit.viewer.columns import DATA
from reward_kit.viewer.problems import Unreadable
from reward_kit.viewer.queries import Database, NotText, Query, quoted
from reward_kit.viewer.views import Operator

__all__ = ["SEARCHED", "FileIdentity", "Lines", "Matched", "Store", "TableFile", "TextMatch"]

SEARCHED = ("query", "response", "reasoning", "ground_truth", "reason")
"""The texts that a search looks through."""
_PART = 4 << 20
"""Bytes of lines that are looked through at once."""
_FIRST_GROUPS, _GROUPS = 1, 8
"""Row groups that are looked through at once: few in the beginning, so that first hits come early."""
_CUT = 4_000
"""Characters of a text that a table's cell is made of."""
_SAFE_RUN = re.compile(r"[a-z0-9 ._-]+")
"""Characters that stand in JSON as themselves, whoever wrote it."""


class FileIdentity(NamedTuple):
    """What tells one state of a file from another."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileIdentity | None:
        """The state of a file now; None where there is none."""
        try:
            return cls.of_stat(path.stat())
        except OSError:
            return None

    @classmethod
    def of_stat(cls, found: os.stat_result) -> FileIdentity:
        """The state that the system told."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def is_same_file(self, other: FileIdentity) -> bool:
        """Whether the other is the same file, perhaps with more in it."""
        return (self.device, self.inode) == (other.device, other.inode)


class TextMatch(NamedTuple):
    """What is looked for in long texts; a row matches where one of the columns does."""

    columns: tuple[str, ...]
    operator: Operator
    value: str


class Matched(NamedTuple):
    """What a part of a scan found."""

    read: int
    """Records looked at so far."""
    rows: Rows


# ── JSON lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Lines(JsonLines):
    """A results.jsonl, of which it is known where each line begins."""

    def __init__(self, path: Path, offsets: Rows, end: int, identity: FileIdentity, columns: dict[str, Any]) -> None:
        """Read from a file as long as it is the one of `identity`.

        `columns`: those made for earlier states of the same file, which are prefixes of those of this one.
        """
        super().__init__(path, offsets)
        self._end = end
        self._identity = identity
        self._made = columns

    def read(self, rows: Rows) -> list[JudgedAnswer]:
        """Read the lines."""
        return [*self._each(rows)]

    def whole_column(self, name: str, kind: str) -> Any:
        """Made of each line once; for lines that were appended, only of these."""
        known = self._made.get(name)
        start = 0 if known is None else len(known)
        if known is not None and start >= len(self._offsets):
            return known[: len(self._offsets)]
        values = [_plain(name, answer) for answer in self._each(np.arange(start, len(self._offsets)))]
        made = _typed(values, kind)
        whole = made if known is None else pa.concat_arrays([known, made])
        self._made[name] = whole
        return whole

    def scan(self, match: TextMatch, query: Query) -> Iterator[Matched]:
        """Look through the bytes first, and read the lines that may match."""
        matches = _predicate(match)
        anchors = _anchors(match)
        with self._opened() as file:
            for first, last in self._parts():
                query.check()
                rows = np.arange(first, last)
                if anchors:
                    rows = self._holding(file, anchors, first, last)
                yield Matched(last, rows[[matches(answer) for answer in self._each(rows)]])

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Ranges of rows of about `_PART` bytes."""
        first, count = 0, len(self._offsets)
        while first < count:
            last = int(np.searchsorted(self._offsets, self._offsets[first] + _PART, side="left"))
            last = max(first + 1, min(last, count))
            yield first, last
            first = last

    def _holding(self, file: BinaryIO, anchors: Sequence[bytes], first: int, last: int) -> Rows:
        """The rows of a range whose lines hold some of these bytes, whatever their case."""
        start, end = int(self._offsets[first]), self._end_of(last - 1)
        file.seek(start)
        block = file.read(end - start).lower()
        begins = self._offsets[first:last] - start
        found: set[int] = set()
        for anchor in anchors:
            place = block.find(anchor)
            while place >= 0:
                row = int(np.searchsorted(begins, place, side="right")) - 1
                found.add(first + row)
                after = int(begins[row + 1]) if row + 1 < len(begins) else len(block)
                place = block.find(anchor, after)
        return np.array(sorted(found), dtype=np.int64)

    def _end_of(self, row: int) -> int:
        return int(self._offsets[row + 1]) if row + 1 < len(self._offsets) else self._end

    def _each(self, rows: Rows, *, whole: bool = True) -> Iterator[JudgedAnswer]:
        try:
            for answer in super()._each(rows, whole=whole):
                if not isinstance(answer.row, dict):
                    raise _changed(self._path)
                yield answer
        except exact_json.JSONDecodeError as error:
            raise _changed(self._path) from error

    def _opened(self) -> BinaryIO:
        file = self._path.open("rb")
        if not self._identity.is_same_file(FileIdentity.of_stat(os.fstat(file.fileno()))):
            file.close()
            raise _changed(self._path)
        return file


def _changed(path: Path) -> Unreadable:
    return Unreadable(f"{path.name!r} changed while it was read. Load the page again.")


def _anchors(match: TextMatch) -> Sequence[bytes]:
    """Bytes of which every matching line holds some, in lower case; none where there are none to be sure of."""
    if match.operator not in ("has", "eq"):
        return ()
    runs = sorted(_SAFE_RUN.findall(match.value.lower()), key=len)
    return (runs[-1].encode(), _NAMES_A_PART) if runs and runs[-1].strip() else ()


_NAMES_A_PART = b'"sample":"'
"""What a line holds whose texts may be elsewhere."""


def _predicate(match: TextMatch) -> Callable[[JudgedAnswer], bool]:
    """Whether what a line says matches."""
    wanted = match.value.lower() if match.operator == "has" else match.value
    tests: dict[str, Callable[[str], bool]] = {
        "has": lambda text: wanted in text.lower(),
        "eq": lambda text: text == wanted,
        "ne": lambda text: text != wanted,
        "lt": lambda text: text < wanted,
        "le": lambda text: text <= wanted,
        "gt": lambda text: text > wanted,
        "ge": lambda text: text >= wanted,
        "empty": lambda text: not text,
        "filled": bool,
    }
    test = tests[match.operator]

    def matches(entry: JudgedAnswer) -> bool:
        return any(test(entry.text(name)) for name in match.columns)

    return matches


def _plain(name: str, entry: JudgedAnswer) -> Any:
    if name == "length":
        return entry.length
    value = entry.columns.get(name.removeprefix(DATA))
    return value if value is None or isinstance(value, str | int | float | bool) else as_text(value)


def _typed(values: Sequence[Any], kind: str) -> Any:
    """Values as a column of one type; what is of another type is missing, except in text."""
    if kind == "number":
        numbers = [
            value if isinstance(value, int | float) and not isinstance(value, bool) else None for value in values
        ]
        return pa.array([None if value is None else float(value) for value in numbers], pa.float64())
    if kind == "boolean":
        return pa.array([value if isinstance(value, bool) else None for value in values], pa.bool_())
    texts = [None if value is None else as_text(value)[:_CUT] for value in values]
    return pa.array([None if text is None else text.encode("utf-8", "replace").decode() for text in texts], pa.string())


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class TableFile(ParquetTexts):
    """A Parquet file. Row groups that hold none of the wanted rows are not read."""

    def __init__(self, path: Path, database: Database, identity: FileIdentity) -> None:
        """Look at the footer; read nothing yet."""
        super().__init__(path)
        self._database = database
        self._identity = identity
        self._schema = self._footer.schema.to_arrow_schema()
        self._held = find_columns({**TEXTS, "error": ("error",), "reasoning": ("reasoning",)}, self._names)
        self._made: dict[str, Any] = {}
        self._is_looked_over = False

    def whole(self, rows: Rows) -> list[dict[str, Any]]:
        """Read these rows with all their columns."""
        try:
            found = self._rows("*", rows)
        except NotText:
            return super().whole(rows)
        return [{name: value for name, value in row.items() if name != _ROW} for row in found]

    def read(self, rows: Rows) -> list[JudgedAnswer]:
        """Read the columns that a table shows, long texts cut."""
        chosen = [_ROW]
        for field, column in self._held.items():
            if field in ("verifier", "tool_calls"):
                continue
            if pa.types.is_string(self._schema.field(column).type):
                chosen.append(f"left({quoted(column)}, {_CUT}) AS {quoted(column)}")
                if field == "response":
                    chosen.append(f"length({quoted(column)}) AS {_LENGTH}")
            else:
                chosen.append(quoted(column))
        if "columns" in self._names:
            chosen.append(quoted("columns"))
        try:
            return [_with_length(row) for row in self._rows(", ".join(chosen), rows)]
        except NotText:
            return [JudgedAnswer(row) for row in super().whole(rows)]

    def whole_column(self, name: str, kind: str) -> Any:
        """Read it once."""
        if name not in self._made:
            try:
                with self._database.query() as query:
                    self._made[name] = self._read_column(query, name, kind)
            except NotText:
                groups = range(len(self._ends))
                every = (answer for group in groups for _, answer in self._slow_group(group))
                self._made[name] = _typed([_plain(name, answer) for answer in every], kind)
        return self._made[name]

    def _read_column(self, query: Query, name: str, kind: str) -> Any:
        if name == "length":
            response = self._text("response")
            values = self._run(query, f"SELECT length({response}) AS value FROM {_FILE} ORDER BY {_ROW}", [])["value"]
            return values.combine_chunks()
        key = "/" + name.removeprefix(DATA).replace("~", "~0").replace("/", "~1")
        is_text = pa.types.is_string(self._schema.field("columns").type)
        held = "columns" if is_text else "to_json(columns)"
        sql = f"SELECT left(json_extract_string({held}, ?), {_CUT}) AS value FROM {_FILE} ORDER BY {_ROW}"
        return _converted(self._run(query, sql, [key])["value"].combine_chunks(), kind)

    def scan(self, match: TextMatch, query: Query) -> Iterator[Matched]:
        """Look through some row groups at a time."""
        texts = [self._text(name) for name in match.columns if name in self._readable()]
        condition, values = _sql_match(texts, match)
        first, group, step = 0, 0, _FIRST_GROUPS
        while group < len(self._ends):
            until = min(group + step, len(self._ends))
            last = int(self._ends[until - 1])
            sql = f"SELECT {_ROW} FROM {_FILE} WHERE {_ROW} BETWEEN ? AND ? AND ({condition}) ORDER BY {_ROW}"
            try:
                found = self._run(query, sql, [first, last - 1, *values])[_ROW].to_numpy().astype(np.int64)
            except NotText:
                found = self._slow_scan(range(group, until), match, query)
            yield Matched(last, found)
            first, group, step = last, until, _GROUPS

    # ── files with bytes in them that are no text, which DuckDB does not read ────────────────────────────────────────

    def _slow_scan(self, groups: range, match: TextMatch, query: Query) -> Rows:
        matches = _predicate(match)
        found: list[int] = []
        for group in groups:
            query.check()
            found += [row for row, answer in self._slow_group(group) if matches(answer)]
        return np.array(found, dtype=np.int64)

    def _slow_group(self, group: int) -> Iterator[tuple[int, JudgedAnswer]]:
        rows = np.arange(self._ends[group - 1] if group else 0, self._ends[group])
        return zip(rows.tolist(), map(JudgedAnswer, super().whole(rows)), strict=True)

    def _readable(self) -> set[str]:
        return {"reason" if name == "verification_reason" else name for name in self._held}

    def _text(self, name: str) -> str:
        """The SQL of a long text."""
        if name == "reason":
            both = [quoted(self._held[field]) for field in ("verification_reason", "error") if field in self._held]
            return f"coalesce({', '.join(f'CAST({column} AS VARCHAR)' for column in both)}, '')"
        if name not in self._held:
            return "''"
        column = self._held[name]
        is_text = pa.types.is_string(self._schema.field(column).type)
        return quoted(column) if is_text else f"CAST({quoted(column)} AS VARCHAR)"

    def _rows(self, chosen: str, rows: Rows) -> list[dict[str, Any]]:
        """These rows, in the order in which they were asked for."""
        wanted = rows.tolist()
        marks = ", ".join("?" * len(wanted))
        with self._database.query() as query:
            table = self._run(query, f"SELECT {chosen} FROM {_FILE} WHERE {_ROW} IN ({marks})", wanted)
        found = {row[_ROW]: row for row in table.to_pylist()}
        if any(row not in found for row in wanted):
            raise _changed(self._path)
        return [found[row] for row in wanted]

    def _run(self, query: Query, sql: str, parameters: Sequence[Any]) -> pa.Table:
        if FileIdentity.of(self._path) != self._identity:
            raise _changed(self._path)
        self._look_over()
        table = query.run(
            sql.replace(_FILE, f"read_parquet(?, {_ROW} = true)", 1), _placed(sql, self._path, parameters)
        )
        if FileIdentity.of(self._path) != self._identity:
            raise _changed(self._path)
        return table

    def _look_over(self) -> None:
        """Refuse a file that is damaged: what reads it compares no checksums."""
        if not self._is_looked_over:
            refuse_damaged_parquet(self._path, pages=True)
            self._is_looked_over = True


Store = Lines | TableFile
"""The texts of a run at one moment."""

_ROW = "file_row_number"
_LENGTH = "__length"
_FILE = "⟨file⟩"


def _placed(sql: str, path: Path, parameters: Sequence[Any]) -> list[Any]:
    """The parameters with the file's path among them, where the file stands in the query."""
    before = sql.partition(_FILE)[0].count("?")
    return [*parameters[:before], str(path), *parameters[before:]]


def _with_length(row: Mapping[str, Any]) -> JudgedAnswer:
    answer = JudgedAnswer(row)
    if row.get(_LENGTH) is not None:
        answer.length = row[_LENGTH]
    return answer


def _sql_match(texts: Sequence[str], match: TextMatch) -> tuple[str, list[Any]]:
    if not texts:
        return "false", []
    tests = {
        "has": "contains(lower({text}), lower(?))", "eq": "{text} = ?", "ne": "{text} IS DISTINCT FROM ?",
        "lt": "{text} < ?", "le": "{text} <= ?", "gt": "{text} > ?", "ge": "{text} >= ?",
        "empty": "coalesce({text}, '') = ''", "filled": "coalesce({text}, '') <> ''",
    }  # fmt: skip
    test = tests[match.operator]
    return " OR ".join(test.format(text=text) for text in texts), [match.value] * (len(texts) if "?" in test else 0)


def _converted(texts: Any, kind: str) -> Any:
    values: list[Any] = texts.to_pylist()
    if kind == "text":
        return texts
    if kind == "boolean":
        return pa.array([{"true": True, "false": False}.get(value) for value in values], pa.bool_())
    return pa.array([_number(value) for value in values], pa.float64())


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
