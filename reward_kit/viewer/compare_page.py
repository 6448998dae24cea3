# SPDX-License-Identifier: Apache-2.0
"""Two runs and more, joined on their samples: figures by `analysis.compare`, and the samples they differ on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.present.conclusions import rewards_in_words, samples_in_words
from reward_kit.analysis.run_comparison import Difference, common_queries, compare
from reward_kit.analysis.run_comparison import Pairing as Paired
from reward_kit.analysis.scores import query_scores
from reward_kit.analysis.selection import first_candidate
from reward_kit.storage.judged import excerpt
from reward_kit.viewer import wire
from reward_kit.viewer.opened import OpenedRun, Snapshot
from reward_kit.viewer.problems import WrongRequest
from reward_kit.viewer.run_page import card_of

__all__ = ["Cell", "compare_page", "compare_rows"]

Cell = Literal["both", "only_a", "only_b", "neither", "differ", "all"]
"""Which samples: of the 2x2 table, those whose scores differ, or all common ones."""
_EXCERPT = 200


def compare_page(runs: Sequence[OpenedRun]) -> wire.ComparePage:
    """Each run beside the first."""
    if len(runs) < len(("a", "b")):
        raise WrongRequest("One run cannot be compared. Choose two or more.")
    snapshots = [run.now() for run in runs]
    found = compare(*(snapshot.held() for snapshot in snapshots))
    return wire.ComparePage(
        runs=[card_of(run, 0) for run in runs],
        pairings=[
            _pairing(runs[0], run, snapshots[0].held(), snapshot.held(), paired)
            for run, snapshot, paired in zip(runs[1:], snapshots[1:], found.pairings, strict=True)
        ],
    )


def _pairing(a: OpenedRun, b: OpenedRun, left: JudgedAnswers, right: JudgedAnswers, found: Paired) -> wire.Pairing:
    table = _table(_joined(left, right)) if found.has_passes and found.common else None
    notes = samples_in_words(found)
    if found.common and found.judged_differently:
        notes.append(f"{rewards_in_words(found)}.")
    if not found.common and (found.samples.same or not found.samples.changed):
        notes.append("They have no judged sample in common, so nothing can be compared.")
    if not found.has_passes:
        notes.append("Nobody said which scores pass, so there is no table of passes.")
    return wire.Pairing(
        a=a.key,
        b=b.key,
        common=found.common,
        only_a=found.only_baseline,
        only_b=found.only_other,
        differences=[_difference(one) for one in found.differences],
        table=table,
        table_of=_table_of(left, right),
        left_out=sum(found.samples.changed.values()),
        same_reward=not found.judged_differently,
        notes=notes,
    )


def _difference(found: Difference) -> wire.DifferenceLine:
    return wire.DifferenceLine(
        figure=found.figure, split=found.split, samples=found.queries, a=found.baseline, b=found.other,
        difference=found.difference, low=found.low, high=found.high, p_value=found.p, won=found.won, lost=found.lost,
        tied=found.queries - found.won - found.lost,
    )  # fmt: skip


class _Joined(NamedTuple):
    """The samples that both runs judged."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    passes_left: NDArray[np.bool_]
    passes_right: NDArray[np.bool_]
    score_left: NDArray[np.float64]
    score_right: NDArray[np.float64]


def _table_of(a: JudgedAnswers, b: JudgedAnswers) -> str:
    single = int(a.judged.max(initial=0)) <= 1 and int(b.judged.max(initial=0)) <= 1
    return "first candidates" if single else "more than half of the candidates"


def _joined(a: JudgedAnswers, b: JudgedAnswers) -> _Joined:
    left, right = common_queries(a, b)
    return _Joined(
        left, right, _passes(a)[left], _passes(b)[right], query_scores(a).of_query()[left],
        query_scores(b).of_query()[right],
    )  # fmt: skip


def _passes(answers: JudgedAnswers) -> NDArray[np.bool_]:
    """Whether a sample counts as passed: its candidate, or more than half of them."""
    if int(answers.judged.max(initial=0)) <= 1:
        return np.equal(np.nan_to_num(first_candidate(answers)), 1)
    found: NDArray[np.bool_] = answers.verified * 2 > answers.judged
    return found


def _table(joined: _Joined) -> list[list[int]]:
    a, b = joined.passes_left, joined.passes_right
    return [[int((a & b).sum()), int((a & ~b).sum())], [int((~a & b).sum()), int((~a & ~b).sum())]]


def compare_rows(a: Snapshot, b: Snapshot, cell: str, split: str, offset: int, limit: int) -> wire.CompareRows:
    """The common samples of one cell of the table, those that differ most first."""
    if cell not in get_args(Cell):
        raise WrongRequest(f"{cell[:40]!r} is not a part of the comparison. Use one of: {', '.join(get_args(Cell))}.")
    left, right = a.held(), b.held()
    joined = _joined(left, right)
    chosen = _chosen(joined, cell)
    if split:
        chosen &= np.array([left.splits[code] == split for code in left.query_split[joined.left]], dtype=np.bool_)
    change = joined.score_right - joined.score_left
    places = np.flatnonzero(chosen)
    places = places[np.argsort(-np.abs(np.nan_to_num(change[places])), kind="stable")]
    shown = places[offset : offset + limit]
    entries = a.read(left.starts[joined.left[shown]]) if len(shown) else []
    rows = [
        wire.CompareRow(
            id=a.names[int(joined.left[place])].as_py(),
            split=left.query_name(int(joined.left[place]))[0] if left.has_splits else "",
            query=excerpt(one.query, _EXCERPT),
            a=_number(joined.score_left[place]),
            b=_number(joined.score_right[place]),
            difference=_number(change[place]),
        )
        for place, one in zip(shown.tolist(), entries, strict=True)
    ]
    return wire.CompareRows(total=len(places), offset=offset, rows=rows)


def _chosen(joined: _Joined, cell: str) -> NDArray[np.bool_]:
    a, b = joined.passes_left, joined.passes_right
    differ = np.nan_to_num(joined.score_right - joined.score_left) != 0
    cells: dict[str, NDArray[np.bool_]] = {
        "both": a & b, "only_a": a & ~b, "only_b": ~a & b, "neither": ~a & ~b, "differ": differ,
        "all": np.ones(len(a), dtype=np.bool_),
    }  # fmt: skip
    return cells[cell]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
