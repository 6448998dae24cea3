"""An experiment as arrays: its rows sorted by query, its queries in the order they first came.

    rows      verdict  1 0 1 · | 0 0 0 0 | 1 1 1 1        1 verified, 0 not, · not judged
    queries   starts   0         4         8       12     the rows of query q are starts[q] … starts[q + 1]

Everything else is counted from these. A row that was not judged is nowhere counted as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reward_kit.analysis.texts import Texts

__all__ = ["NOT_JUDGED", "Experiment", "Integers", "Numbers"]

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]

NOT_JUDGED = -1
"""The verdict of a row that has none."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One best-of-N experiment, read and put in order."""

    name: str
    """The file's name, or what the caller calls it."""
    metadata: Mapping[str, str]
    """What the file says of itself: model, notes, and everything else its writer noted."""
    splits: tuple[str, ...]
    """The splits' names, in the order they first came."""
    query_ids: pa.Array[Any]
    """Each query's id."""
    query_split: Integers
    """Each query's split, as an index into `splits`."""
    starts: Integers
    """Where each query's rows begin, and where the last one's end."""
    candidate: Integers
    """Each row's candidate index."""
    verdict: NDArray[np.int8]
    """Each row's verdict: 1, 0 or `NOT_JUDGED`."""
    figures: pa.Table
    """Scores, tokens, money, errors: the columns there are, row by row."""
    source_rows: Integers
    """Where each row stands in the source."""
    texts: Texts = field(repr=False)
    """Reads what was asked and answered, for single rows."""
    repeated: int = 0
    """Rows that came again for the same candidate; the last of them counts."""

    @property
    def records(self) -> int:
        """How many rows there are."""
        return len(self.verdict)

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.query_split)

    @cached_property
    def query_of_row(self) -> Integers:
        """The query each row belongs to."""
        return np.repeat(np.arange(self.queries), self.sizes)

    @cached_property
    def sizes(self) -> Integers:
        """How many rows each query has."""
        return np.diff(self.starts)

    @cached_property
    def judged(self) -> Integers:
        """How many rows of each query were judged."""
        return self._per_query(self.verdict != NOT_JUDGED)

    @cached_property
    def verified(self) -> Integers:
        """How many rows of each query were verified."""
        return self._per_query(self.verdict == 1)

    @cached_property
    def queries_of_split(self) -> tuple[Integers, ...]:
        """The queries of each split."""
        order = np.argsort(self.query_split, kind="stable")
        ends = np.cumsum(np.bincount(self.query_split, minlength=len(self.splits)))[:-1]
        return tuple(np.split(order, ends))

    def numbers(self, name: str) -> Numbers | None:
        """A column of figures, NaN where there is none; None where the experiment has no such column."""
        if name not in self.figures.column_names:
            return None
        values = self.figures[name].to_numpy().astype(np.float64, copy=False)
        return None if np.isnan(values).all() else values

    def query_name(self, query: int) -> tuple[str, str]:
        """A query's split and id."""
        return self.splits[self.query_split[query]], str(self.query_ids[query].as_py())

    def rows_of(self, query: int) -> slice:
        """The rows of a query."""
        return slice(int(self.starts[query]), int(self.starts[query + 1]))

    def _per_query(self, flags: NDArray[np.bool_]) -> Integers:
        if not len(flags):
            return np.zeros(self.queries, dtype=np.int64)
        return np.add.reduceat(flags, self.starts[:-1], dtype=np.int64)
