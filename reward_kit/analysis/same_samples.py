# SPDX-License-Identifier: Apache-2.0
"""Which samples of two experiments are the same: they have the same id, and ask the same with the same right answer.

    id        A                    B
    q1        2 + 3?   truth 5     2 + 3?   truth 5       the same: paired
    q2        2 + 3?   truth 5     7 - 1?   truth 6       another question: counted, and never paired
    q3        2 + 3?   truth 5     2 + 3?   truth 6       another ground truth (a label was mended): likewise
    q4        2 + 3?   truth 5     -        -             nothing to compare: paired by its id alone, and counted

A record of a run carries the digest of its sample (`content`). Equal digests are equal samples. Where digests differ,
or a file has none, the texts are read: another system prompt changes the digest, too, and is the same sample.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import Integers, JudgedAnswers
from reward_kit.storage.judged import JudgedAnswer, as_text
from reward_kit.storage.vocabularies import RUN, SHELL, TEXTS

__all__ = ["SameSamples", "SharedSamples", "same_samples"]

Flags = NDArray[np.bool_]

_AT_ONCE = 1 << 15
"""Samples whose texts are in memory at a time."""
_NAMED = 3
"""Columns that differ and are named."""
_SETUP = "setup_commands"
_SYSTEM = ("system", "developer")
_READ = frozenset((*TEXTS["query"], *TEXTS["ground_truth"], "messages", "system_prompt", "tools", "columns"))
"""What a table's row says of its sample."""

_SAME, _QUESTION, _TRUTH, _COLUMNS, _WITHIN = range(5)
_KINDS = {
    _QUESTION: "another question",
    _TRUTH: "another ground truth",
    _COLUMNS: "other columns",
    _WITHIN: "answers to more than one sample",
}


@dataclass(frozen=True, slots=True)
class SharedSamples:
    """What became of the samples whose id is in both experiments."""

    shared: int
    """Samples whose id is in both."""
    same: int
    """Those of them that are the same sample, as far as the files tell."""
    changed: Mapping[str, int]
    """The others, which are in no figure: how many have `another question`, `another ground truth` …"""
    columns: tuple[str, ...]
    """The columns of the dataset in which most samples differ that have the same question and ground truth."""
    asked_differently: int
    """Samples that are the same and were asked with another system prompt, or with other tools."""
    columns_differ: int
    """Samples that are the same although other columns differ: in rows that held the answers, these may describe them.
    In rows that a model was asked, columns belong to the question."""
    unchecked: int
    """Samples that count as the same by their id alone: one of the files tells neither question nor ground truth."""


class SameSamples(NamedTuple):
    """The samples that are the same in two experiments: the numbers that the one and the other have for them."""

    left: Integers
    right: Integers
    shared: SharedSamples


_known: WeakKeyDictionary[JudgedAnswers, WeakKeyDictionary[JudgedAnswers, SameSamples]] = WeakKeyDictionary()
"""What was found out: the viewer asks again for every list of samples."""


def same_samples(baseline: JudgedAnswers, other: JudgedAnswers) -> SameSamples:
    """Join two experiments on their samples' ids and on what the samples are."""
    held = _known.setdefault(baseline, WeakKeyDictionary())
    found = held.get(other)
    if found is None:
        found = held[other] = _joined(baseline, other)
    return found


def _joined(baseline: JudgedAnswers, other: JudgedAnswers) -> SameSamples:
    left, right = _shared_ids(baseline, other)
    kinds = np.full(len(left), _SAME, dtype=np.int8)
    differ, within = _unlike_digests(baseline, other, left, right)
    kinds[within] = _WITHIN
    columns: Counter[str] = Counter()
    asked = beside = unchecked = 0
    places = np.flatnonzero(differ & ~within)
    for start in range(0, len(places), _AT_ONCE):
        part = places[start : start + _AT_ONCE]
        for place, found in _compared(baseline, other, left, right, part):
            kinds[place] = found.kind
            columns.update(found.columns)
            beside += bool(found.columns) and found.kind == _SAME
            asked += found.asked_differently
            unchecked += found.unchecked
    same = kinds == _SAME
    counts = {name: int(np.count_nonzero(kinds == kind)) for kind, name in _KINDS.items()}
    shared = SharedSamples(
        shared=len(left),
        same=int(np.count_nonzero(same)),
        changed={name: count for name, count in counts.items() if count},
        columns=tuple(name for name, _ in columns.most_common(_NAMED)),
        asked_differently=asked,
        columns_differ=beside,
        unchecked=unchecked,
    )
    return SameSamples(left[same], right[same], shared)


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shared_ids(baseline: JudgedAnswers, other: JudgedAnswers) -> tuple[Integers, Integers]:
    """The queries of both, found by split and id: the one's numbers, and the other's.

    Where one of them has no splits (a run), and the other has (an experiment over the same rows), by id alone.
    """
    if baseline.has_splits != other.has_splits and _ids_differ(baseline) and _ids_differ(other):
        return _same_ids(baseline, other, np.arange(baseline.queries), np.arange(other.queries))
    lefts, rights = [], []
    for split in baseline.splits:
        if split not in other.splits:
            continue
        left = baseline.queries_of_split[baseline.splits.index(split)]
        right = other.queries_of_split[other.splits.index(split)]
        ours, theirs = _same_ids(baseline, other, left, right)
        lefts.append(ours)
        rights.append(theirs)
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *lefts]), np.concatenate([none, *rights])


def _ids_differ(experiment: JudgedAnswers) -> bool:
    return bool(pc.count_distinct(experiment.query_ids).as_py() == experiment.queries)


def _same_ids(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers
) -> tuple[Integers, Integers]:
    """Those queries among `left` and `right` that have the same id, in the order of `left`."""
    found = pc.index_in(baseline.query_ids.take(left), value_set=other.query_ids.take(right))
    known = found.is_valid().to_numpy(zero_copy_only=False)
    return left[known], right[found.drop_null().to_numpy()]


# ── digests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _unlike_digests(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers
) -> tuple[Flags, Flags]:
    """Which pairs their digests do not show to be equal, and which have answers to several samples on one side."""
    mine, theirs = _digests(baseline), _digests(other)
    within = _several(baseline, mine)[left] | _several(other, theirs)[right]
    if mine is None or theirs is None:
        return np.ones(len(left), dtype=np.bool_), within
    equal: Any = pc.equal(mine.take(baseline.starts[left]), theirs.take(other.starts[right]))
    return ~np.asarray(equal.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_), within


def _digests(experiment: JudgedAnswers) -> pa.Array[Any] | None:
    """The digest that each row carries of its sample; None where rows carry none."""
    if "content" not in experiment.figures.column_names:
        return None
    column = experiment.figures["content"].combine_chunks()
    return None if column.null_count == len(column) else column


def _several(experiment: JudgedAnswers, digests: pa.Array[Any] | None) -> Flags:
    """Which queries have answers to more than one sample: its row was changed while the run went on."""
    found = np.zeros(experiment.queries, dtype=np.bool_)
    if digests is not None:
        unlike: Any = pc.not_equal(digests[1:], digests[:-1])
        changes = np.flatnonzero(unlike.fill_null(False).to_numpy(zero_copy_only=False)) + 1
        inside = changes[experiment.query_of_row[changes] == experiment.query_of_row[changes - 1]]
        found[experiment.query_of_row[inside]] = True
    return found


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Found(NamedTuple):
    """How two samples of one id compare."""

    kind: int
    columns: tuple[str, ...] = ()
    asked_differently: bool = False
    unchecked: bool = False


def _compared(
    baseline: JudgedAnswers, other: JudgedAnswers, left: Integers, right: Integers, places: Integers
) -> Iterator[tuple[int, _Found]]:
    """The pairs at these places, each with what was found; those that are equal letter by letter are left out."""
    given = baseline.answers_given or other.answers_given
    mine, theirs = _first_rows(baseline, left[places]), _first_rows(other, right[places])
    unlike = ~_equal_texts(mine, theirs)
    rows = zip(_plain_rows(mine, unlike), _plain_rows(theirs, unlike), strict=True)
    for place, (one, two) in zip(places[unlike].tolist(), rows, strict=True):
        yield place, _compare(_Asked.by(one), _Asked.by(two), given=given)


def _first_rows(experiment: JudgedAnswers, queries: Integers) -> pa.Table | list[dict[str, Any]]:
    rows = experiment.source_rows[experiment.starts[queries]]
    table = experiment.texts.columns_among(_READ, rows)
    if table is None:
        return experiment.texts.whole(rows)
    return table if table.num_columns else [{} for _ in rows]


def _plain_rows(rows: pa.Table | list[dict[str, Any]], chosen: Flags) -> list[dict[str, Any]]:
    if isinstance(rows, pa.Table):
        return rows.filter(pa.array(chosen)).to_pylist()
    return [row for row, wanted in zip(rows, chosen.tolist(), strict=True) if wanted]


def _equal_texts(mine: pa.Table | list[dict[str, Any]], theirs: pa.Table | list[dict[str, Any]]) -> Flags:
    """Of two tables with the same columns, the rows that are equal letter by letter: most of them, found quickly."""
    none = np.zeros(len(mine), dtype=np.bool_)
    if not (isinstance(mine, pa.Table) and isinstance(theirs, pa.Table)) or mine.schema.names != theirs.schema.names:
        return none
    told, equal = none, ~none
    for name in mine.schema.names:
        one, two = mine[name], theirs[name]
        if one.type != two.type or not (pa.types.is_string(one.type) or pa.types.is_large_string(one.type)):
            return none
        absent: Any = pc.and_(one.is_null(), two.is_null())
        alike: Any = pc.equal(one, two)
        missing = absent.to_numpy()
        equal = equal & (missing | alike.fill_null(False).to_numpy())
        told = told | ~missing
    return equal & told


class _Asked(NamedTuple):
    """What a row says of its sample, in a form that can be compared. None: it says nothing of it."""

    prompt: str | None
    """The turns before the answer, without system turns."""
    query: str | None
    """What the user said last: all that some tables hold."""
    truth: str | None
    columns: Mapping[str, str] | None
    system: str | None
    tools: str | None

    @classmethod
    def by(cls, row: Mapping[str, Any]) -> _Asked:
        """Read from a line of results, or a row of a table."""
        line = JudgedAnswer(row)
        turns = [_turn(turn) for turn in line.prompt if turn.get("role") not in _SYSTEM]
        has_turns = bool(row.get("messages"))
        return cls(
            prompt=_plain(turns) if has_turns else None,
            query=" ".join(line.query.split()) or None,
            truth=_plain(line.ground_truth) if any(name in row for name in TEXTS["ground_truth"]) else None,
            columns=_columns(line),
            system=_system(line) if has_turns else None,
            tools=_plain(line.tools) if "tools" in row else None,
        )


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: held for name, held in turn.items() if held is not None and name != "reasoning_content"}


def _system(line: JudgedAnswer) -> str:
    return "\n\n".join(as_text(turn.get("content")) for turn in line.prompt if turn.get("role") in _SYSTEM)


def _columns(line: JudgedAnswer) -> Mapping[str, str] | None:
    """The columns of the dataset, set-up commands included; None where the file keeps none."""
    row = line.row
    if not {RUN.score_is_valid, SHELL.is_verified, "columns"} & row.keys():
        return None
    held = {**line.columns, _SETUP: row.get(_SETUP)}
    return {name: text for name, value in held.items() if (text := _plain(value)) not in ("", "[]")}


def _plain(value: Any) -> str:
    """A value as text that is the same however a file spells it: 4, 4.0 and "4"; a list, and its JSON."""
    held = _parsed(value) if isinstance(value, str) else value
    if isinstance(held, str):
        return held
    if isinstance(held, float) and held.is_integer():
        held = int(held)
    return "" if held is None else json.dumps(held, sort_keys=True, default=str)


def _parsed(text: str) -> Any:
    """What a text holds where it is JSON; else itself."""
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False}.get(text, text)


def _compare(one: _Asked, other: _Asked, *, given: bool) -> _Found:
    whole = one.prompt is not None and other.prompt is not None
    asked, asked_other = (one.prompt, other.prompt) if whole else (one.query, other.query)
    if _differ(asked, asked_other):
        return _Found(_QUESTION)
    if _differ(one.truth, other.truth):
        return _Found(_TRUTH)
    columns = _unlike_columns(one, other)
    if columns and (_SETUP in columns or not given):
        return _Found(_COLUMNS, columns)
    known = (asked is not None and asked_other is not None) or (one.truth is not None and other.truth is not None)
    asked_differently = _differ(one.system, other.system) or _differ(one.tools, other.tools)
    return _Found(_SAME, columns, asked_differently=asked_differently, unchecked=not known)


def _unlike_columns(one: _Asked, other: _Asked) -> tuple[str, ...]:
    if one.columns is None or other.columns is None:
        return ()
    return tuple(sorted(dict(one.columns.items() ^ other.columns.items())))


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
