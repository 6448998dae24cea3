# SPDX-License-Identifier: Apache-2.0
"""An experiment as arrays: its rows sorted by query, its queries in the order they first came.

    rows      verdict  1 0 1 · | 0 0 0 0 | 1 1 1 1        1 verified, 0 not, · not judged
    queries   starts   0         4         8       12     the rows of query q are starts[q] … starts[q + 1]

Everything else is counted from these. A row that was not judged is nowhere counted as wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.analysis.texts import Texts
from reward_kit.errors import DatasetError
from reward_kit.storage.thresholds import Thresholds

__all__ = ["METRIC", "NOT_JUDGED", "Grouping", "Integers", "JudgedAnswers", "Judging", "Numbers", "arrange", "dot"]

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]

NOT_JUDGED = -1
"""The verdict of a row that has none."""
METRIC = "metric "
"""Begins the name of a figure that the reward measured beside the score."""


class Grouping(NamedTuple):
    """A column by which queries are told apart."""

    column: str
    names: tuple[str, ...]
    """Its values, in the order they first came."""
    of_query: Integers
    """Each query's value, as an index into `names`."""


class Judging(NamedTuple):
    """What judged the answers, as far as the file or its run tells."""

    digest: str | None = None
    """Of the reward and all that its verdicts depend on."""
    settings: Mapping[str, Any] | None = None
    """What that digest is made of: `reward.function`, `reward.source`, `reward.params` …"""
    thresholds: Thresholds | None = None
    """From which score on an answer passes."""


_UNKNOWN_JUDGING = Judging()


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
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
    thresholded: bool = True
    """Whether somebody said what is verified: the file holds verdicts, or a threshold was chosen."""
    grouping: Grouping | None = None
    """What queries are told apart by, where that is not their split."""
    episodes: Mapping[str, Any] | None = None
    """The figures of an agent's episodes, where these are any."""
    judging: Judging = _UNKNOWN_JUDGING
    answers_given: bool = False
    """Whether the rows held the answers before the run: then their columns may describe these, not the questions."""

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
        return self.per_query(self.verdict != NOT_JUDGED)

    @cached_property
    def verified(self) -> Integers:
        """How many rows of each query were verified."""
        return self.per_query(self.verdict == 1)

    @property
    def has_splits(self) -> bool:
        """Whether the queries are of named splits. Those of a run may be of none."""
        return self.splits != (_ONLY_SPLIT,)

    @cached_property
    def queries_of_split(self) -> tuple[Integers, ...]:
        """The queries of each split."""
        order = np.argsort(self.query_split, kind="stable")
        ends = np.cumsum(np.bincount(self.query_split, minlength=len(self.splits)))[:-1]
        return tuple(np.split(order, ends))

    @cached_property
    def scores(self) -> Numbers:
        """Each judged row's score, NaN for the others. Where there are verdicts only, 1 is verified and 0 is not."""
        found = self.numbers("score")
        values = self.verdict.astype(np.float64) if found is None else found
        return np.where(self.verdict == NOT_JUDGED, np.nan, values)

    @cached_property
    def graded(self) -> bool:
        """Whether the scores say more than verified or not: some judged one is neither 0 nor 1."""
        return _between(self.scores[:1_000]) or _between(self.scores)  # the first ones usually show it

    @property
    def has_passes(self) -> bool:
        """Whether it is known which answers are right: scores of 0 and 1 say it, others only beside a threshold."""
        return self.thresholded or not self.graded

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of what was measured beside the score."""
        names = self.figures.column_names
        return tuple(name.removeprefix(METRIC) for name in names if name.startswith(METRIC))

    @property
    def groups(self) -> tuple[str, ...]:
        """What the groups are called that figures are told apart by: the splits, unless another column was named."""
        return self.splits if self.grouping is None else self.grouping.names

    @property
    def group_of_query(self) -> Integers:
        """Each query's group, as an index into `groups`."""
        return self.query_split if self.grouping is None else self.grouping.of_query

    @cached_property
    def queries_of_group(self) -> tuple[Integers, ...]:
        """The queries of each group."""
        if self.grouping is None:
            return self.queries_of_split
        return tuple(np.flatnonzero(self.grouping.of_query == group) for group in range(len(self.grouping.names)))

    def numbers(self, name: str) -> Numbers | None:
        """A column of figures, NaN where there is none; None where the experiment has no such column."""
        if name not in self._numbers:
            self._numbers[name] = self._as_numbers(name)
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, Numbers | None]:
        """Columns that were asked for: several figures are made of the same one."""
        return {}

    def _as_numbers(self, name: str) -> Numbers | None:
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

    def per_query(self, flags: NDArray[np.bool_]) -> Integers:
        """How many rows of each query have the flag."""
        if not len(flags):
            return np.zeros(self.queries, dtype=np.int64)
        return np.add.reduceat(flags, self.starts[:-1], dtype=np.int64)


def dot(left: Numbers, right: Numbers) -> float:
    """The sum of the products, on this thread: `@` wakes others for it, which take longer to come than the sum."""
    return float(np.einsum("i,i->", left, right))


def _between(scores: Numbers) -> bool:
    return bool(((scores != 0) & (scores != 1) & ~np.isnan(scores)).any())


# ── from a table of rows in any order ─────────────────────────────────────────────────────────────────────────────────


_ONLY_SPLIT = "all"
"""What the split is called where an experiment has none."""


class _Coded(NamedTuple):
    """A column as small numbers, and what they stand for."""

    codes: Integers
    values: pa.Array[Any]


def arrange(
    table: pa.Table, *, name: str, metadata: Mapping[str, str], texts: Texts, thresholded: bool = True
) -> JudgedAnswers:
    """Sort the rows of a table of figures. It must have `query_id` and `is_verified`; nothing in it is changed."""
    ids = _coded(table["query_id"])
    splits = _coded(table["split"]) if "split" in table.column_names else _one_split(table.num_rows)
    verdict = _verdicts(table["is_verified"], name)
    key = ids.codes * len(splits.values) + splits.codes
    query = _numbered(key, len(ids.values) * len(splits.values))
    candidate = _candidates(table, query)
    order = _sorted(query, candidate)
    repeated = 0
    if order is not None:
        order, repeated = _without_repeats(order, query, candidate)
    rows = np.arange(table.num_rows) if order is None else order
    figures = table.drop_columns(["query_id", "is_verified"])
    if order is not None:
        query, candidate, verdict, figures = query[rows], candidate[rows], verdict[rows], figures.take(rows)
    starts = np.concatenate([[0], np.flatnonzero(query[1:] != query[:-1]) + 1, [len(query)]]).astype(np.int64)
    firsts = key[rows[starts[:-1]]]
    return JudgedAnswers(
        name=name,
        metadata=metadata,
        splits=tuple(_ONLY_SPLIT if value is None else str(value) for value in splits.values.to_pylist()),
        query_ids=ids.values.take(pa.array(firsts // len(splits.values))),
        query_split=firsts % len(splits.values),
        starts=starts,
        candidate=candidate,
        verdict=verdict,
        figures=figures,
        source_rows=rows,
        texts=texts,
        repeated=repeated,
        thresholded=thresholded,
    )


def _coded(column: pa.ChunkedArray[Any]) -> _Coded:
    """Number the distinct values; a missing one is a value of its own."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return _Coded(np.zeros(0, dtype=np.int64), pa.array([], pa.string()))
    values: Any = column.chunk(0)
    names = values.dictionary.cast(pa.string())
    parts = [pc.fill_null(part.indices.cast(pa.int64()), len(names)).to_numpy() for part in _chunks(column)]
    if column.null_count:
        names = pa.concat_arrays([names, pa.array([None], pa.string())])
    return _Coded(np.concatenate(parts), names)


def _chunks(column: pa.ChunkedArray[Any]) -> list[Any]:
    return list(column.chunks)


def _one_split(rows: int) -> _Coded:
    return _Coded(np.zeros(rows, dtype=np.int64), pa.array([None], pa.string()))


def _verdicts(column: pa.ChunkedArray[Any], name: str) -> NDArray[np.int8]:
    """1, 0 or `NOT_JUDGED`; a column of anything but truth values is refused. NaN is a missing one."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), NOT_JUDGED, dtype=np.int8)
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DatasetError(
            f"The verdicts of {name!r} are of type {str(kind)!r}; expected true, false or null. Convert the column."
        )
    missing = np.asarray(column.is_null(nan_is_null=True).to_numpy(), dtype=np.bool_)
    zero: Any = pa.scalar(0).cast(kind)
    values = np.asarray(column.fill_null(zero).to_numpy())
    if not pa.types.is_boolean(kind) and not np.isin(values[~missing], (0, 1)).all():
        raise DatasetError(f"The verdicts of {name!r} are not all 0 or 1. Convert the column to true, false or null.")
    verdicts = np.where(missing, NOT_JUDGED, values == 1)
    return verdicts.astype(np.int8)


def _numbered(key: Integers, distinct: int) -> Integers:
    """Number the queries in the order they first come."""
    changes = np.flatnonzero(key[1:] != key[:-1]) + 1
    firsts = key[np.concatenate([[0], changes])] if len(key) else key
    seen = np.zeros(distinct, dtype=np.bool_)
    seen[firsts] = True
    if np.count_nonzero(seen) == len(firsts):  # each query's rows are together, as a run writes them
        lengths = np.diff(np.concatenate([[0], changes, [len(key)]]))
        return np.repeat(np.arange(len(firsts)), lengths) if len(key) else key
    _, first_rows, inverse = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first_rows), dtype=np.int64)
    rank[np.argsort(first_rows, kind="stable")] = np.arange(len(first_rows))
    return rank[inverse]


def _candidates(table: pa.Table, query: Integers) -> Integers:
    """The candidate index of each row; where the table has none, the rows of a query are counted."""
    if "candidate_idx" in table.column_names and not table["candidate_idx"].null_count:
        return table["candidate_idx"].cast(pa.int64()).to_numpy()
    order = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    counted = np.empty(len(query), dtype=np.int64)
    counted[order] = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return counted


def _sorted(query: Integers, candidate: Integers) -> Integers | None:
    """The order of rows by query and candidate; None where they are in it already, each candidate once."""
    later, same = query[1:] > query[:-1], query[1:] == query[:-1]
    if np.all(later | (same & (candidate[1:] > candidate[:-1]))):
        return None
    return np.lexsort((candidate, query))


def _without_repeats(order: Integers, query: Integers, candidate: Integers) -> tuple[Integers, int]:
    """Of rows for the same candidate keep the last: the sort is stable, so it is the one written last."""
    ahead = np.flatnonzero((np.diff(query[order]) == 0) & (np.diff(candidate[order]) == 0))
    return np.delete(order, ahead), len(ahead)
