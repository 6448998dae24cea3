# SPDX-License-Identifier: Apache-2.0
"""Choosing what to look at: every record has a chance, and its probability is what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_kit.storage.reviews import Review
from reward_kit.viewer.reviewing.choosing import CONTESTED, METRICS, NEAR, Draw, Way, draw_next, signs_of_doubt
from reward_kit.viewer.reviewing.records import JudgedRecords
from tests.analysis.experiments import rows_of, table_of, write, write_run
from tests.storage.test_reviews import REVIEW

QUERIES = {"a": "1111", "b": "1100", "c": "0000", "d": "1.10", "e": "1111"}


@pytest.fixture
def records(tmp_path: Path) -> JudgedRecords:
    return JudgedRecords(write(tmp_path / "one.parquet", table_of(rows_of(QUERIES))))


def reviewed(records: JudgedRecords, draw: Draw, reviewer: str = "ada", way: Way = "random") -> Review:
    name, index = records.key(draw.row)
    return replace(REVIEW, id=name, response_index=index, reviewer=reviewer, chosen=way,
                   probability=draw.probability, pool=draw.pool)  # fmt: skip


def all_draws(records: JudgedRecords, way: Way, reviewer: str = "ada") -> list[Draw]:
    reviews: list[Review] = []
    draws = []
    while (draw := draw_next(records, reviews, reviewer, way)) is not None:
        draws.append(draw)
        reviews.append(reviewed(records, draw, reviewer, way))
    return draws


@pytest.mark.parametrize("way", ["random", "disagreement"])
def test_every_judged_record_is_drawn_once(records: JudgedRecords, way: Way) -> None:
    draws = all_draws(records, way)
    assert sorted(draw.row for draw in draws) == np.flatnonzero(records.judged).tolist()
    assert [draw.pool for draw in draws] == list(range(19, 0, -1))


def test_at_random_every_record_that_is_left_has_the_same_chance(records: JudgedRecords) -> None:
    assert [draw.probability for draw in all_draws(records, "random")] == [1 / left for left in range(19, 0, -1)]


@pytest.mark.parametrize("way", ["random", "disagreement"])
def test_records_come_as_often_as_their_probability_says(records: JudgedRecords, way: Way) -> None:
    """Over many reviewers, each with a lot of their own: the first draw of each."""
    firsts = [draw_next(records, [], f"reviewer {number}", way) for number in range(3_000)]
    found = Counter(draw.row for draw in firsts if draw is not None)
    chances = {draw.row: draw.probability for draw in firsts if draw is not None}
    assert set(found) == set(np.flatnonzero(records.judged).tolist())
    assert sum(chances.values()) == pytest.approx(1)
    for row, chance in chances.items():
        assert found[row] / 3_000 == pytest.approx(chance, abs=4 * (chance / 3_000) ** 0.5), row


def test_asking_again_gives_the_same_record(records: JudgedRecords) -> None:
    first = draw_next(records, [], "ada", "random")
    again = draw_next(JudgedRecords(records.path), [], "ada", "random")
    assert first == again


def test_each_reviewer_has_a_pool_of_their_own(records: JudgedRecords) -> None:
    draw = draw_next(records, [], "ada", "random")
    assert draw is not None
    other = draw_next(records, [reviewed(records, draw)], "bob", "random")
    assert other is not None
    assert other.pool == 19


def test_what_was_found_by_browsing_stays_in_the_pool(records: JudgedRecords) -> None:
    browsed = replace(REVIEW, id="a", chosen="browsing", probability=None, pool=None)
    draw = draw_next(records, [browsed], "ada", "random")
    assert draw is not None
    assert draw.pool == 19


def test_samples_whose_answers_differ_are_contested(records: JudgedRecords) -> None:
    signs = signs_of_doubt(records)
    contested = {records.key(int(row))[0] for row in np.flatnonzero(signs & CONTESTED)}
    assert contested == {"b", "d"}
    assert not signs[~records.judged].any()


def run(path: Path, scores: Mapping[str, Sequence[float]], threshold: float, **columns: Any) -> JudgedRecords:
    write_run(path, scores, **columns)
    return JudgedRecords(path, pass_threshold=threshold)


def test_scores_near_the_threshold_are_doubtful(tmp_path: Path) -> None:
    records = run(tmp_path / "run", {"a": [0.0], "b": [0.48], "c": [0.52], "d": [1.0], "e": [0.7]}, 0.5)
    signs = signs_of_doubt(records)
    assert {records.key(int(row))[0] for row in np.flatnonzero(signs & NEAR)} == {"b", "c"}


def test_metrics_that_contradict_the_verdict_are_doubtful(tmp_path: Path) -> None:
    def metrics(name: str, index: int) -> dict[str, Any]:
        # `length` is beyond 1 and says neither; `other` contradicts most verdicts: it measures something else
        value = 0.0 if name == "b" else 1.0
        return {"format": {"score": value}, "length": {"score": 80.0}, "other": {"score": 0.0}}

    records = run(tmp_path / "run", {name: [1.0] for name in "abcd"}, 1.0, evaluation_metrics=metrics)
    signs = signs_of_doubt(records)
    assert {records.key(int(row))[0] for row in np.flatnonzero(signs & METRICS)} == {"b"}


def test_without_any_doubt_the_draw_is_at_random_and_says_so(tmp_path: Path) -> None:
    records = run(tmp_path / "run", {name: [1.0] for name in "abcd"}, 1.0)
    draw = draw_next(records, [], "ada", "disagreement")
    assert draw is not None
    assert (draw.probability, draw.why) == (0.25, "No record that is left has a sign of doubt: drawn at random.")
