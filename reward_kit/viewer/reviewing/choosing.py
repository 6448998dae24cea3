# SPDX-License-Identifier: Apache-2.0
"""Choosing the next record to look at, in two ways that both know with what probability they choose.

    random          every record that is left has the same chance: for rates
    disagreement    seven times in ten a record with a sign of doubt, three times in ten any record: to find faults

Signs of doubt: some answers to the same sample pass and some do not; the score is near the threshold; the metrics
contradict each other or the verdict. Records with the same signs form a group; a group is drawn, then a record in it.
Every record has a chance at every draw, so both ways can be used in turn and all reviews count (see
`statistics.weighted`).

The same reviews give the same next record, also after the server was started again: who would rather not look at a
record cannot get another one by asking again. `unclear` is the way on.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reward_kit.storage.reviews import Review
from reward_kit.viewer.reviewing.records import JudgedRecords

__all__ = ["Draw", "Way", "draw_next", "signs_of_doubt"]

Way = Literal["random", "disagreement"]

FLOOR = 0.3
"""How often the second way draws from all records."""
_HALF = 0.5
_NEAR = 0.1
"""A score is near the threshold within this share of the range that most scores lie in."""
_SOMETHING_ELSE = 0.5
"""A metric that contradicts more verdicts than this measures something else."""

CONTESTED, NEAR, METRICS = 1, 2, 4
_NAMES = {
    CONTESTED: "other answers to the same sample have the other verdict",
    NEAR: "its score is near the threshold",
    METRICS: "its metrics do not agree with each other or with the verdict",
}


class Draw(NamedTuple):
    """A record that was drawn."""

    row: int
    probability: float
    """Of this draw, among the records that were left."""
    pool: int
    """How many were left."""
    why: str


def draw_next(records: JudgedRecords, reviews: Sequence[Review], reviewer: str, way: Way) -> Draw | None:
    """The next record for this reviewer; None where all were looked at.

    Records that the reviewer found by browsing stay in the pool: else what is left would no longer speak for all.
    """
    drawn = {review.key for review in reviews if review.reviewer == reviewer and review.probability is not None}
    left = records.judged.copy()
    for row in records.rows(sorted(drawn)):
        if row is not None:
            left[row] = False
    pool = int(np.count_nonzero(left))
    if not pool:
        return None
    lot = _lot(records.results_digest, reviewer, way, len(drawn))
    signs = signs_of_doubt(records)
    groups = [group for group in np.unique(signs[left]).tolist() if group] if way == "disagreement" else []
    if not groups:
        return _among_all(left, pool, lot, way)
    places = np.flatnonzero(left)
    if lot.random() < FLOOR:
        row = int(places[lot.randrange(pool)])
    else:
        group = lot.choice(groups)
        members = places[signs[places] == group]
        row = int(members[lot.randrange(len(members))])
    kind = int(signs[row])
    size = int(np.count_nonzero(signs[places] == kind))
    preferred = (1 - FLOOR) / (len(groups) * size) if kind else 0.0
    return Draw(row, FLOOR / pool + preferred, pool, _why(kind))


def _among_all(left: NDArray[np.bool_], pool: int, lot: random.Random, way: Way) -> Draw:
    row = int(np.flatnonzero(left)[lot.randrange(pool)])
    why = "Drawn at random." if way == "random" else "No record that is left has a sign of doubt: drawn at random."
    return Draw(row, 1 / pool, pool, why)


def _lot(digest: str, reviewer: str, way: Way, made: int) -> random.Random:
    """The same for the same question."""
    text = "\0".join((digest, reviewer, way, str(made)))
    return random.Random(hashlib.sha256(text.encode("utf-8", "replace")).digest())


def _why(kind: int) -> str:
    if not kind:
        return "Drawn at random, so that records without a sign of doubt are seen, too."
    signs = [name for sign, name in _NAMES.items() if kind & sign]
    return f"Drawn because {' and '.join(signs)}."


def signs_of_doubt(records: JudgedRecords) -> NDArray[np.int8]:
    """The signs of each row, added up."""
    signs = np.zeros(records.answers.records, dtype=np.int8)
    signs[_contested(records)] |= CONTESTED
    signs[_near_threshold(records)] |= NEAR
    signs[_metrics_disagree(records)] |= METRICS
    signs[~records.judged] = 0
    return signs


def _contested(records: JudgedRecords) -> NDArray[np.bool_]:
    answers = records.answers
    if not answers.has_passes:
        return np.zeros(answers.records, dtype=np.bool_)
    some = (answers.verified > 0) & (answers.verified < answers.judged)
    return np.asarray(some[answers.query_of_row], dtype=np.bool_)


def _near_threshold(records: JudgedRecords) -> NDArray[np.bool_]:
    answers = records.answers
    if not (answers.has_passes and answers.graded):
        return np.zeros(answers.records, dtype=np.bool_)
    scores = answers.scores
    low, high = np.nanquantile(scores, (0.01, 0.99))
    limits = np.array([records.thresholds.of(split) for split in answers.splits])
    limit = limits[answers.query_split[answers.query_of_row]]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(scores - limit) <= _NEAR * (high - low), dtype=np.bool_)


def _metrics_disagree(records: JudgedRecords) -> NDArray[np.bool_]:
    """Whether some of verdict and metrics say yes and some no. Only metrics from 0 to 1 say either."""
    answers = records.answers
    verdict = answers.verdict == 1
    votes = [verdict] if answers.has_passes else []
    yes = no = np.zeros(answers.records, dtype=np.bool_)
    known: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = [(vote, ~vote) for vote in votes]
    for name in answers.metrics:
        values = answers.numbers(f"metric {name}")
        if values is None or np.nanmin(values) < 0 or np.nanmax(values) > 1:
            continue
        with np.errstate(invalid="ignore"):
            one = values >= _HALF, values < _HALF
        if votes and np.mean(one[0][records.judged] != verdict[records.judged]) > _SOMETHING_ELSE:
            continue
        known.append(one)
    for says_yes, says_no in known:
        yes, no = yes | says_yes, no | says_no
    return np.asarray(yes & no, dtype=np.bool_)
