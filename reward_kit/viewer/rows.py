# SPDX-License-Identifier: Apache-2.0
"""The table: an order of rows, worked out once for each view of each state of the files; pages are slices of it."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.storage.judged import JudgedAnswer, as_text, excerpt
from reward_kit.viewer.columns import DATA, WIDE, describe_columns
from reward_kit.viewer.opened import Snapshot
from reward_kit.viewer.problems import WrongRequest
from reward_kit.viewer.queries import Database, Query, quoted
from reward_kit.viewer.store import SEARCHED, TextMatch
from reward_kit.viewer.views import Condition, View
from reward_kit.viewer.wire import Cell, ColumnInfo, Row, Rows

__all__ = ["MOST_ROWS", "Orders", "Table", "columns_for", "find_column"]

MOST_ROWS = 1_000
"""Rows of one page."""
_KEPT_BYTES = 64 << 20
_EXCERPTS = {"query": 220, "response": 220, "ground_truth": 120, "reason": 160}
_DATA_EXCERPT = 80
_FOUND = "__found"
_HEAD = 1_000
"""Rows of a sorted table that are had without sorting all of it."""
_COMPARISONS = {"eq": "=", "ne": "IS DISTINCT FROM", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

Order = NDArray[np.int64]
_Key = tuple[str, int, Hashable]
"""A run, its version, and what was worked out."""


class Orders:
    """What was worked out of views: orders, and which rows hold a text. The least used are forgotten first."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        """Know none yet."""
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, NDArray[Any]] = OrderedDict()
        self._most_bytes = most_bytes
        self._bytes = 0

    def get(self, key: _Key) -> NDArray[Any] | None:
        """What is known of a state of a run."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: _Key, found: NDArray[Any]) -> None:
        """Keep it; what is known of older states of the same run goes."""
        with self._lock:
            outdated = [known for known in self._known if known[0] == key[0] and known[1] < key[1]]
            for known in outdated:
                self._bytes -= self._known.pop(known).nbytes
            if key not in self._known:
                self._known[key] = found
                self._bytes += found.nbytes
            while self._bytes > self._most_bytes and len(self._known) > 1:
                self._bytes -= self._known.popitem(last=False)[1].nbytes


def columns_for(snapshot: Snapshot, view: View) -> list[ColumnInfo]:
    """The columns of the table that a view shows."""
    if snapshot.columns is None:
        return []
    return describe_columns(snapshot.columns.of(view.by), view.by, snapshot.data_columns)


def find_column(columns: Sequence[ColumnInfo], name: str) -> ColumnInfo:
    """The column of this name."""
    found = next((column for column in columns if column["name"] == name), None)
    if found is None:
        known = ", ".join(column["name"] for column in columns[:20])
        raise WrongRequest(f"There is no column {name[:80]!r}. Use one of: {known}.")
    return found


class Table:
    """The rows of one state of a run, in the order of one view."""

    def __init__(
        self, database: Database, orders: Orders, snapshot: Snapshot, view: View, query: Query | None = None
    ) -> None:
        """Look at nothing yet. Whoever gives a `query` can end the work on it."""
        self._database = database
        self._query = query
        self._orders = orders
        self.snapshot = snapshot
        self.view = view
        self.columns = columns_for(snapshot, view)

    def order(self) -> Order:
        """The rows, by their numbers."""
        if self.snapshot.columns is None:
            return np.zeros(0, dtype=np.int64)
        key = self._key(self.view)
        known = self._orders.get(key)
        if known is None:
            with self._asking() as query:
                known = self._worked_out(query)
            self._orders.put(key, known)
        return known

    def _asking(self) -> contextlib.AbstractContextManager[Query]:
        return self._database.query() if self._query is None else contextlib.nullcontext(self._query)

    def _key(self, what: Hashable) -> _Key:
        return self.snapshot.run.key, self.snapshot.version, what

    def page(self, offset: int, limit: int, columns: Sequence[str] = ()) -> Rows:
        """Some rows, with excerpts of their texts; of all columns, unless some are named."""
        names = [find_column(self.columns, name)["name"] for name in columns]
        names = names or [column["name"] for column in self.columns]
        order, total = self._beginning() if offset + limit <= _HEAD else (self.order(), None)
        total = len(order) if total is None else total
        shown = order[offset : offset + limit]
        return Rows(
            version=self.snapshot.version, total=total, offset=offset, columns=names, rows=self.rows(shown, names)
        )

    def _beginning(self) -> tuple[Order, int | None]:
        """The first rows of a sorted table, and how many there are: most people look at no others.

        Where the whole order is known, or as quickly had, that, and None.
        """
        key = self._key((self.view, _HEAD))
        known = self._orders.get(key)
        if (
            self.view.sort is None
            or self.snapshot.columns is None
            or self._orders.get(self._key(self.view)) is not None
        ):
            return self.order(), None
        if known is None:
            with self._asking() as query:
                known = self._worked_out(query, _HEAD)
            self._orders.put(key, known)
        return known[1:], int(known[0])

    def rows(self, shown: Order, names: Sequence[str] = ()) -> list[Row]:
        """These rows with their cells."""
        if not len(shown) or self.snapshot.columns is None:
            return []
        names = names or [column["name"] for column in self.columns]
        table = self.snapshot.columns.of(self.view.by).take(shown)
        narrow: dict[str, list[Any]] = {name: table[name].to_pylist() for name in table.column_names}
        entries: list[JudgedAnswer] | None = None
        if any(name not in narrow for name in names):
            entries = self.snapshot.read(shown if self.view.by == "record" else self.snapshot.held().starts[shown])
        return [
            Row(
                id=as_text(narrow["id"][place]),
                index=int(narrow["index"][place]) if "index" in narrow else None,
                cells=[
                    narrow[name][place] if name in narrow or entries is None else _cell(name, entries[place])
                    for name in names
                ],
            )
            for place in range(len(shown))
        ]

    # ── the order ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _worked_out(self, query: Query, first: int | None = None) -> Order:
        """The order; of its `first` rows only, how many there are in all, and then these."""
        table = self.snapshot.held_columns.of(self.view.by)
        narrow = [condition for condition in self.view.where if condition.column not in WIDE]
        sort = self._sort_column()
        conditions, parameters = self._conditions(narrow)
        found = self._found(query)
        if not conditions and sort is None:
            return np.arange(table.num_rows) if found is None else np.flatnonzero(found)
        for name in dict.fromkeys([condition.column for condition in narrow] + ([] if sort is None else [sort])):
            if name not in table.column_names:
                table = table.append_column(name, self._more_column(name))
        if found is not None:
            table = table.append_column(_FOUND, pa.array(found))
            conditions.append(_FOUND)
        needed = {"row", "sample", "passed", "judged", "best", "worst", _FOUND, sort, *(one.column for one in narrow)}
        query.register("looked_at", table.select([name for name in table.column_names if name in needed]))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        direction = "DESC" if self.view.descending else "ASC"
        by = f"{quoted(sort)} {direction} NULLS LAST, row" if sort is not None else "row"
        limit = "" if first is None else f" LIMIT {first}"
        found_rows = query.run(f"SELECT row FROM looked_at{where} ORDER BY {by}{limit}", parameters)["row"]
        rows = found_rows.to_numpy().astype(np.int64, copy=False)
        if first is None:
            return rows
        total = table.num_rows
        if conditions:
            total = query.run(f"SELECT count(*) AS total FROM looked_at{where}", parameters)["total"][0].as_py()
        return np.concatenate([[total], rows])

    def _sort_column(self) -> str | None:
        if self.view.sort is None:
            return None
        column = find_column(self.columns, self.view.sort)
        if column["wide"]:
            raise WrongRequest(
                f"The table is not sorted by long texts such as {column['name']!r}. Take another column."
            )
        return column["name"]

    def _more_column(self, name: str) -> Any:
        """A column that is not among the narrow ones; of a sample, what its first record holds."""
        values = self.snapshot.more_column(name)
        return values if self.view.by == "record" else values.take(self.snapshot.held().starts[:-1])

    def _found(self, query: Query) -> NDArray[np.bool_] | None:
        """Which rows hold the texts that are asked for; None where none is."""
        matches = [
            TextMatch((condition.column,), condition.operator, condition.value)
            for condition in self.view.where
            if condition.column in WIDE and find_column(self.columns, condition.column)
        ]
        if self.view.search:
            matches.append(TextMatch(SEARCHED, "has", self.view.search))
        found: NDArray[np.bool_] | None = None
        for match in matches:
            held = self.records_with(match, query)
            found = held if found is None else found & held
        return None if found is None else self.as_rows(found)

    def as_rows(self, records: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows of the table are meant by records: themselves, or the samples that have one of them."""
        if self.view.by == "record":
            return records
        return np.logical_or.reduceat(records, self.snapshot.held().starts[:-1])

    def records_with(self, match: TextMatch, query: Query) -> NDArray[np.bool_]:
        """Which records hold a text."""
        known = self._orders.get(self._key(match))
        if known is None:
            known = self.none_found(match)
            for part in self.snapshot.scan(match, query):
                known[part.rows] = True
            self.remember(match, known)
        return known

    def none_found(self, match: TextMatch) -> NDArray[np.bool_]:
        """Which records hold a text, before any text was looked at: those of the ids that hold it."""
        answers = self.snapshot.held()
        if match.columns != SEARCHED:
            return np.zeros(answers.records, dtype=np.bool_)
        ids: Any = pc.match_substring(self.snapshot.names, match.value, ignore_case=True)
        named: NDArray[np.bool_] = ids.to_numpy(zero_copy_only=False)[answers.query_of_row]
        return named

    def without_search(self, query: Query) -> NDArray[np.bool_]:
        """Which rows the view would show if it searched for nothing."""
        view = self.view._replace(search="", sort=None)
        order = Table(self._database, self._orders, self.snapshot, view, query).order()
        shown = np.zeros(self.snapshot.held_columns.of(self.view.by).num_rows, dtype=np.bool_)
        shown[order] = True
        return shown

    def remember(self, match: TextMatch, found: NDArray[np.bool_]) -> None:
        """Keep which records hold a text: other orders of the same search need not look again."""
        self._orders.put(self._key(match), found)

    def _conditions(self, where: Sequence[Condition]) -> tuple[list[str], list[Any]]:
        conditions: list[str] = []
        parameters: list[Any] = []
        for condition in where:
            sql, values = _as_sql(condition, find_column(self.columns, condition.column))
            conditions.append(sql)
            parameters += values
        if self.view.contested:
            conditions.append(self._contested())
        return conditions, parameters

    def _contested(self) -> str:
        if not self.snapshot.held().has_passes:
            return "false" if self.view.by == "record" else "best > worst"
        if self.view.by == "sample":
            return "passed > 0 AND passed < judged"
        return (
            "sample IN (SELECT sample FROM looked_at GROUP BY sample HAVING bool_or(passed) AND NOT bool_and(passed))"
        )


def _as_sql(condition: Condition, column: ColumnInfo) -> tuple[str, list[Any]]:
    """A filter as SQL, with what is bound to it."""
    name = quoted(column["name"])
    if condition.operator in ("empty", "filled"):
        empty = f"({name} IS NULL)" if column["type"] != "text" else f"({name} IS NULL OR {name} = '')"
        return (empty if condition.operator == "empty" else f"(NOT {empty})"), []
    if condition.operator == "has":
        return f"contains(lower(CAST({name} AS VARCHAR)), ?)", [condition.value.lower()]
    return f"{name} {_COMPARISONS[condition.operator]} ?", [_typed(condition, column)]


def _typed(condition: Condition, column: ColumnInfo) -> Any:
    if column["type"] == "text":
        return condition.value
    if column["type"] == "boolean":
        if condition.value not in ("true", "false", "1", "0"):
            raise WrongRequest(
                f"{column['name']!r} is true or false, not {condition.value[:40]!r}. Correct the filter."
            )
        return condition.value in ("true", "1")
    try:
        number = float(condition.value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise WrongRequest(f"{column['name']!r} holds numbers; {condition.value[:40]!r} is none. Correct the filter.")
    return number


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cell(name: str, entry: JudgedAnswer) -> Cell:
    """A cell of a column that is not among the narrow ones."""
    if name == "length":
        return entry.length
    if name in WIDE:
        return excerpt(entry.text(name), _EXCERPTS[name])
    value = entry.columns.get(name.removeprefix(DATA))
    if value is None or isinstance(value, int | float | bool):
        return value
    return excerpt(as_text(value), _DATA_EXCERPT)
