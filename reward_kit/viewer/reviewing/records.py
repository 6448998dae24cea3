# SPDX-License-Identifier: Apache-2.0
"""The judged records of a run or a Parquet file, as a reviewer needs them: by place, with verdict and answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import NOT_JUDGED, JudgedAnswers
from reward_kit.analysis.loading import load
from reward_kit.models import Rollout
from reward_kit.storage.judged import JudgedAnswer, Key, RolloutsBeside
from reward_kit.storage.run_directory import RESULTS, read_document
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.viewer.sample_names import sample_names

__all__ = ["JudgedRecords", "PresentVerdict", "digest_of_answer"]

_FOOTER = 1 << 16
"""Bytes at the end of a Parquet file that tell one from another: its footer has statistics of all pages."""


class PresentVerdict(NamedTuple):
    """What stands in the results now."""

    score: float | None
    passed: bool | None
    """None where nobody said which scores pass, and where there is no verdict."""
    answer_digest: str
    reason: str


class JudgedRecords:
    """The records of one run, or of one Parquet file. Texts are read when they are asked for."""

    def __init__(
        self, path: Path, *, pass_threshold: float | None = None, answers: JudgedAnswers | None = None
    ) -> None:
        """Read the figures of `path`: a run directory, its results.jsonl, or a Parquet file; unless they are given."""
        self.path = path
        self.answers: JudgedAnswers = answers or load(path, pass_threshold=pass_threshold)
        self._given_threshold = pass_threshold

    @property
    def directory(self) -> Path | None:
        """The run directory; None where there is none."""
        place = self.path if self.path.is_dir() else self.path.parent
        return place if (place / RESULTS).exists() and self.path.suffix != ".parquet" else None

    @cached_property
    def names(self) -> pa.Array[Any]:
        """What each sample is called."""
        return sample_names(self.answers).cast(pa.string())

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Which rows have a verdict."""
        return np.asarray(self.answers.verdict != NOT_JUDGED, dtype=np.bool_)

    @cached_property
    def thresholds(self) -> Thresholds:
        """From which score on an answer passes: what the run says; of a table, what its scores and verdicts show."""
        if self._given_threshold is not None:
            return Thresholds(self._given_threshold, given=True)
        if self.directory is not None:
            return thresholds_of(self.directory)
        shown = {split: self._shown_by(number) for number, split in enumerate(self.answers.splits)}
        return Thresholds(by_split={split: limit for split, limit in shown.items() if limit is not None})

    def _shown_by(self, split: int) -> float | None:
        """The lowest score of a split that passes, where every lower one fails; None where that shows nothing."""
        answers = self.answers
        here = answers.query_split[answers.query_of_row] == split
        passing, failing = (answers.scores[here & (answers.verdict == verdict)] for verdict in (1, 0))
        if not len(passing) or (len(failing) and failing.max() >= passing.min()):
            return None
        return float(passing.min())

    @cached_property
    def results_digest(self) -> str:
        """Which results these are."""
        if self.directory is not None:
            manifest = read_document(self.directory / "manifest.json") or {}
            digest = (manifest.get("digests") or {}).get("results", {}).get("digest")
            if isinstance(digest, str):
                return digest
        file = self.path / RESULTS if self.path.is_dir() else self.path
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _FOOTER))
            return hashlib.sha256(b"%d " % size + opened.read()).hexdigest()[:16]

    def rows(self, keys: Sequence[Key]) -> list[int | None]:
        """The row of each record, by the sample's id and the answer's index; None where there is none."""
        if not keys:
            return []
        ids = pa.array([name for name, _ in keys], pa.string())
        found = pc.index_in(ids, value_set=self.names).to_pylist()
        return [
            None if query is None else self._row_in(query, index) for query, (_, index) in zip(found, keys, strict=True)
        ]

    def _row_in(self, query: int, index: int) -> int | None:
        rows = self.answers.rows_of(query)
        held = np.flatnonzero(self.answers.candidate[rows] == index)
        return rows.start + int(held[0]) if len(held) else None

    def key(self, row: int) -> Key:
        """The sample's id and the answer's index of a row."""
        query = int(self.answers.query_of_row[row])
        return str(self.names[query].as_py()), int(self.answers.candidate[row])

    def rollouts(self, keys: Sequence[Key]) -> dict[Key, Rollout]:
        """These records read back whole, from the rollouts where there are any; one that is not there is left out."""
        with RolloutsBeside(self.directory) as beside:
            found = {key: rollout for key in keys if (rollout := beside.get(key)) is not None}
        if len(found) == len(set(keys)):
            return found
        rows = {key: row for key, row in zip(keys, self.rows(keys), strict=True) if row is not None}
        places = self.answers.source_rows[np.array([*rows.values()], dtype=np.int64)]
        lines = self.answers.texts.whole(places) if rows else []
        return {key: JudgedAnswer(line).rollout() for key, line in zip(rows, lines, strict=True)}

    def group(self, key: Key) -> list[Rollout]:
        """All rollouts of the record's sample, in their order: some rewards judge them together."""
        (row,) = self.rows([key])
        if row is None:
            return []
        rows = self.answers.rows_of(int(self.answers.query_of_row[row]))
        keys = [(key[0], int(index)) for index in self.answers.candidate[rows]]
        found = self.rollouts(keys)
        return [found[one] for one in keys if one in found]

    def passed(self, row: int) -> bool | None:
        """Whether the record passes, by its verdict."""
        if not self.judged[row] or not self.answers.has_passes:
            return None
        return bool(self.answers.verdict[row] == 1)

    def threshold_shown(self, row: int) -> float | None:
        """From which score on the record passes, where its score is graded and that is known."""
        answers, limits = self.answers, self.thresholds
        split = answers.splits[answers.query_split[answers.query_of_row[row]]]
        known = limits.given or split in limits.by_split
        return limits.of(split) if answers.graded and answers.has_passes and known else None

    def verdicts(self, rows: Sequence[int]) -> list[PresentVerdict]:
        """What is said of these rows now, and which answers it is said of."""
        places = np.asarray(rows, dtype=np.int64)
        if not len(places):
            return []
        texts = self.answers.texts.take(
            ["response", "tool_calls", "verification_reason"], self.answers.source_rows[places]
        )
        missing: list[Any] = [None] * len(places)
        told = zip(
            rows, texts.get("response", missing), texts.get("tool_calls", missing),
            texts.get("verification_reason", missing), strict=True,
        )  # fmt: skip
        return [
            PresentVerdict(
                score=float(self.answers.scores[row]) if self.judged[row] else None,
                passed=self.passed(row),
                answer_digest=digest_of_answer(response, calls),
                reason="" if reason is None else str(reason),
            )
            for row, response, calls, reason in told
        ]


def digest_of_answer(response: Any, tool_calls: Any = None) -> str:
    """A short digest of an answer: a review is about this text, and no other in its place."""
    said = orjson.dumps([response, tool_calls], default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(said).hexdigest()[:16]
