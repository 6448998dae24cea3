# SPDX-License-Identifier: Apache-2.0
"""The table: an order of rows, worked out once for each view of each state of the files; pages are slices of it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reward_kit.viewer.columns import DATA, WIDE, describe_columns
from reward_kit.viewer.lines import Told, as_text, excerpt
from reward_kit.viewer.opened import Snapshot
from reward_kit.viewer.problems import WrongRequest
from reward_kit.viewer.queries import Database, Query, quoted
from reward_kit.viewer.views import Condition, View
from reward_kit.viewer.wire import Cell, ColumnInfo, Row, Rows

__all__ = ["MOST_ROWS", "Orders", "Table", "columns_for", "find_column", "texts_of"]

MOST_ROWS = 1_000
"""Rows of one page."""
_KEPT_ORDERS = 24
_EXCERPTS = {"query": 220, "response": 220, "ground_truth": 120, "reason": 160}
_DATA_EXCERPT = 80
_COMPARISONS = {"eq": "=", "ne": "IS DISTINCT FROM", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

Order = NDArray[np.int64]


class Orders:
    """Orders that were worked out, the least used forgotten first."""

    def __init__(self) -> None:
        """Know none yet."""
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int, View], Order] = OrderedDict()

    def get(self, key: tuple[str, int, View]) -> Order | None:
        """The order of a view, where it is known."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, key: tuple[str, int, View], order: Order) -> None:
        """Keep an order; those of older states of the same run go."""
        with self._lock:
            for known in [known for known in self._known if known[0] == key[0] and known[1] != key[1]]:
                del self._known[known]
            self._known[key] = order
            while len(self._known) > _KEPT_ORDERS:
                self._known.popitem(last=False)


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

    def __init__(self, database: Database, orders: Orders, snapshot: Snapshot, view: View) -> None:
        """Look at nothing yet."""
        self._database = database
        self._orders = orders
        self.snapshot = snapshot
        self.view = view
        self.columns = columns_for(snapshot, view)

    def order(self) -> Order:
        """The rows, by their numbers."""
        if self.snapshot.columns is None:
            return np.zeros(0, dtype=np.int64)
        key = (self.snapshot.run.key, self.snapshot.version, self.view)
        known = self._orders.get(key)
        if known is None:
            with self._database.query() as query:
                known = self._worked_out(query)
            self._orders.put(key, known)
        return known

    def page(self, offset: int, limit: int) -> Rows:
        """Some rows, with excerpts of their texts."""
        order = self.order()
        shown = order[offset : offset + limit]
        return Rows(
            version=self.snapshot.version,
            total=len(order),
            offset=offset,
            columns=[column["name"] for column in self.columns],
            rows=self.rows(shown),
        )

    def rows(self, shown: Order) -> list[Row]:
        """These rows with their cells."""
        if not len(shown) or self.snapshot.columns is None:
            return []
        table = self.snapshot.columns.of(self.view.by).take(shown)
        answers = self.snapshot.held()
        records = shown if self.view.by == "record" else answers.starts[shown]
        told = self.snapshot.told(records)
        narrow: dict[str, list[Any]] = {name: table[name].to_pylist() for name in table.column_names}
        return [
            Row(
                id=as_text(narrow["id"][place]),
                index=int(narrow["index"][place]) if "index" in narrow else None,
                cells=[_cell(column["name"], narrow, place, told[place]) for column in self.columns],
            )
            for place in range(len(shown))
        ]

    # ── the order ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _worked_out(self, query: Query) -> Order:
        table = self.snapshot.held_columns.of(self.view.by)
        conditions, parameters = self._conditions()
        sort = self._sort_column()
        for name in self._named():
            if name not in table.column_names:
                table = table.append_column(name, self._wide(name))
        if not conditions and sort is None:
            return np.arange(table.num_rows)
        query.register("looked_at", table)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        direction = "DESC" if self.view.descending else "ASC"
        by = f"{quoted(sort)} {direction} NULLS LAST, row" if sort is not None else "row"
        found = query.run(f"SELECT row FROM looked_at{where} ORDER BY {by}", parameters)
        return found["row"].to_numpy().astype(np.int64)

    def _sort_column(self) -> str | None:
        if self.view.sort is None:
            return None
        column = find_column(self.columns, self.view.sort)
        if column["wide"]:
            raise WrongRequest(
                f"The table is not sorted by long texts such as {column['name']!r}. Take another column."
            )
        return column["name"]

    def _named(self) -> list[str]:
        """The columns that the order depends on."""
        names = [condition.column for condition in self.view.where]
        names += [self.view.sort] if self.view.sort is not None else []
        names += ["query", "response", "ground_truth", "reason"] if self.view.search else []
        return list(dict.fromkeys(names))

    def _wide(self, name: str) -> Any:
        """A column that is not among the narrow ones, read from the files."""
        answers = self.snapshot.held()
        if self.view.by == "record":
            return pa.array([_plain(name, told) for told in self.snapshot.told(np.arange(answers.records))])
        if name in ("response", "reason"):  # of a sample: what any of its candidates says
            every = [as_text(_plain(name, told)) for told in self.snapshot.told(np.arange(answers.records))]
            slices = (answers.rows_of(sample) for sample in range(answers.queries))
            return pa.array(["\n".join(every[rows]) for rows in slices])
        return pa.array([_plain(name, told) for told in self.snapshot.told(answers.starts[:-1])])

    def _conditions(self) -> tuple[list[str], list[Any]]:
        conditions: list[str] = []
        parameters: list[Any] = []
        for condition in self.view.where:
            sql, values = _as_sql(condition, find_column(self.columns, condition.column))
            conditions.append(sql)
            parameters += values
        if self.view.search:
            texts = ["query", "response", "ground_truth", "reason"]
            conditions.append("(" + " OR ".join(f"contains(lower({quoted(name)}), ?)" for name in ["id", *texts]) + ")")
            parameters += [self.view.search.lower()] * (len(texts) + 1)
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


def texts_of(told: Told) -> dict[str, str]:
    """The long texts of a record."""
    return {
        "query": told.query,
        "response": told.response,
        "ground_truth": as_text(told.ground_truth),
        "reason": told.reason or told.error or "",
    }


def _plain(name: str, told: Told) -> Cell:
    if name in WIDE:
        return texts_of(told)[name]
    if name == "length":
        return len(told.response)
    value = told.columns.get(name.removeprefix(DATA))
    return value if value is None or isinstance(value, str | int | float | bool) else as_text(value)


def _cell(name: str, narrow: dict[str, list[Any]], place: int, told: Told) -> Cell:
    if name in narrow:
        value: Cell = narrow[name][place]
        return value
    found = _plain(name, told)
    return excerpt(found, _EXCERPTS.get(name, _DATA_EXCERPT)) if isinstance(found, str) else found
