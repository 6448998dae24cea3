# SPDX-License-Identifier: Apache-2.0
"""A search through all texts of a run, told as it goes on: how much was read, what was found so far, the first hits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reward_kit.viewer.problems import WrongRequest
from reward_kit.viewer.queries import Query
from reward_kit.viewer.rows import Table
from reward_kit.viewer.store import SEARCHED, TextMatch
from reward_kit.viewer.wire import SearchProgress

__all__ = ["search"]

_HITS = 100
"""Rows that are told; the others are for the table to show."""
_OFTEN = 0.1
"""Seconds between two events, once the first hit was told."""


def search(table: Table, query: Query) -> Iterator[SearchProgress]:
    """Look through the texts; the last event is `done`. What was found is remembered for the table's own pages."""
    if not table.view.search:
        raise WrongRequest("There is nothing to search for. Write q=TEXT.")
    if table.snapshot.answers is None:
        yield SearchProgress(done=True, read=0, records=0, found=0, hits=[])
        return
    match = TextMatch(SEARCHED, "has", table.view.search)
    going = _Search(table, table.without_search(query))
    found = table.none_found(match)
    records = table.snapshot.held().records
    told_at = 0.0
    fresh = going.take(np.flatnonzero(found))
    for part in table.snapshot.scan(match, query):
        found[part.rows] = True
        fresh = np.concatenate([fresh, going.take(part.rows)])
        now = time.monotonic()
        if now - told_at >= _OFTEN or (len(fresh) and going.told == 0):
            yield going.event(min(part.read, records), fresh, done=False)
            told_at, fresh = now, fresh[:0]
    table.remember(match, found)
    yield going.event(records, fresh, done=True)


class _Search:
    """What was found so far."""

    def __init__(self, table: Table, allowed: NDArray[np.bool_]) -> None:
        self._table = table
        self._allowed = allowed
        """Rows that the rest of the view shows, and that were not found yet."""
        self._found = 0
        self.told = 0

    def take(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of the table that these records add."""
        rows = records
        if self._table.view.by == "sample":
            rows = np.unique(self._table.snapshot.held().query_of_row[records])
        rows = rows[self._allowed[rows]]
        self._allowed[rows] = False
        self._found += len(rows)
        return rows

    def event(self, read: int, fresh: NDArray[np.int64], *, done: bool) -> SearchProgress:
        """What is told now."""
        shown = fresh[: max(0, _HITS - self.told)]
        self.told += len(shown)
        records = self._table.snapshot.held().records
        return SearchProgress(done=done, read=read, records=records, found=self._found, hits=self._table.rows(shown))
