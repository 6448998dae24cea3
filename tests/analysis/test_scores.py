# SPDX-License-Identifier: Apache-2.0
"""Graded scores: the mean and its interval, what they are told apart by, and how they are spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reward_kit.analysis import analyse, compare, load, run_figures
from reward_kit.analysis.scores import QueryScores, round_steps, score_spread
from reward_kit.errors import DatasetError
from reward_kit.execution.summary import summarise
from reward_kit.statistics import ClusteredMean
from tests.analysis.experiments import graded_rows, rows_of, table, table_of, write, write_run

SCORES = st.one_of(st.floats(0, 1), st.floats(-50, 50), st.sampled_from([0.0, 0.5, 1.0]))
QUERIES = st.lists(st.lists(SCORES, min_size=1, max_size=5), min_size=1, max_size=12)


def named(queries: list[list[float]]) -> dict[str, list[float]]:
    return {f"q{number}": scores for number, scores in enumerate(queries)}


@given(QUERIES)
def test_arrays_give_the_mean_that_one_pass_over_rows_gives(queries: list[list[float]]) -> None:
    one_by_one = ClusteredMean()
    for scores in queries:
        one_by_one.add(scores)
    expected, found = one_by_one.estimate(), run_figures(table_of(graded_rows(named(queries)))).mean
    assert expected is not None and found is not None
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert found.count == expected.count
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_a_run_is_told_with_the_digits_of_its_own_summary(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scores = {f"q{number}": (rng.integers(0, 9, 4) / 8).tolist() for number in range(40)}
    metric = {"style": {"score": 0.25, "is_score_valid": True, "reason": ""}}
    path = write_run(tmp_path / "run", scores, evaluation_metrics=metric, usage={"completion_tokens": 3}, cost=0.5)
    rows = map(orjson.loads, (path / "results.jsonl").read_bytes().splitlines())
    summary = summarise(rows, pass_threshold=1.0)
    found = run_figures(load(path, pass_threshold=1.0))
    for estimate, told in ((found.mean, summary["mean_score"]), (found.metrics["style"], summary["metrics"]["style"])):
        assert estimate is not None
        assert (estimate.value, estimate.low, estimate.high) == (told["value"], told["low"], told["high"])
    for k, estimate in found.pass_at_k.items():
        told = summary["pass_at_k"][str(k)]
        assert (estimate.value, estimate.low, estimate.high) == (told["value"], told["low"], told["high"])
    assert (found.judged, found.failed, found.cost) == (summary["judged"], summary["failed"], summary["cost"])
    assert found.completion_tokens == summary["completion_tokens"]


def test_verdicts_alone_are_scores_of_0_and_1() -> None:
    source = table({"a": "110", "b": "0.."}).drop_columns(["score"])
    found = run_figures(source)
    assert found.mean is not None and found.rate is not None
    assert (found.mean.value, found.mean.low, found.mean.high) == pytest.approx(
        (found.rate.value, found.rate.low, found.rate.high)
    )


# ── which answers are right is somebody's decision ───────────────────────────────────────────────────────────────────


def test_graded_scores_are_not_cut_at_a_score_that_nobody_gave(tmp_path: Path) -> None:
    scores = {"a": [0.4, 1.0], "b": [0.2, 0.9]}
    for source in (write_run(tmp_path / "run", scores), table_of(graded_rows(scores))):
        report = analyse(source)
        assert report.overall.mean is not None
        assert report.overall.mean.value == pytest.approx(0.625)
        assert (report.overall.rate, report.overall.any, report.curve, report.optimal) == (None, None, (), None)
        given_one = analyse(load(source, pass_threshold=0.9))
        assert given_one.overall.rate is not None and given_one.overall.rate.value == 0.5


def test_scores_of_0_and_1_need_no_threshold(tmp_path: Path) -> None:
    figures = run_figures(write_run(tmp_path, {"a": [0.0, 1.0], "b": [1.0, None]}))
    assert figures.rate is not None and figures.rate.value == pytest.approx(2 / 3)
    assert figures.failed == 1


def test_the_runs_own_threshold_counts_where_it_was_chosen(tmp_path: Path) -> None:
    path = write_run(tmp_path, {"a": [0.4, 0.6]})
    (path / "config.yaml").write_text("reward:\n  pass_threshold: 0.5\n")
    chosen = run_figures(path).rate
    assert chosen is not None and chosen.value == 0.5
    (path / "config.yaml").write_text("reward:\n  pass_threshold: 1.0\n")
    assert run_figures(path).rate is None


def test_a_threshold_that_is_given_overrules_the_verdicts_of_a_file(tmp_path: Path) -> None:
    rows = rows_of({"a": "11", "b": "0."}, score=lambda _, index, verdict: None if verdict == "." else 0.3 + index / 5)
    found = run_figures(load(write(tmp_path / "a.parquet", table_of(rows)), pass_threshold=0.5))
    assert found.rate is not None
    assert found.rate.value == pytest.approx(1 / 3)
    assert found.judged == 3


# ── by a column ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_figures_are_told_apart_by_a_column_of_the_dataset(tmp_path: Path) -> None:
    scores = {"a": [0.2, 0.4], "b": [0.8, 1.0], "c": [0.0, 0.1], "d": [0.6, 0.6]}

    def subject(name: str, *_: object) -> str:
        return "law" if name in "ab" else "art"

    run = write_run(tmp_path / "run", scores, columns=lambda name, _: {"subject": subject(name)})
    rows = graded_rows(scores)
    for row in rows:
        row["subject"] = subject(row["query_id"])
    frame = table_of(rows)
    own = (orjson.dumps({"subject": row["subject"]}).decode() for row in rows)
    stored = table_of([row | {"columns": text} for row, text in zip(graded_rows(scores), own, strict=True)])
    for source in (run, frame, stored, write(tmp_path / "a.parquet", frame), write(tmp_path / "b.parquet", stored)):
        report = analyse(load(source, by="subject"))
        assert report.grouped_by == "subject"
        means = {part.split: part.mean.value for part in report.splits if part.mean is not None}
        assert means == pytest.approx({"law": 0.6, "art": 0.325})
    (pairing,) = compare(load(run, by="subject"), load(frame, by="subject"), examples=0).pairings
    assert {one.split for one in pairing.differences} == {"all", "law", "art"}


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a": [0.5]}, columns={"level": 3})
    with pytest.raises(DatasetError, match=r"no column 'subject'.*level"):
        load(run, by="subject")
    numbers = analyse(load(run, by="level")).splits
    assert [part.split for part in numbers] == ["3"]


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mean_scores_are_compared_where_scores_are_graded(tmp_path: Path) -> None:
    """It used to be 0.0 % against 0.0 %, whatever the scores were."""
    rng = np.random.default_rng(5)
    base = rng.beta(2, 3, 60)
    before = {f"q{number}": np.clip(rng.normal(base[number], 0.1, 4), 0, 1).tolist() for number in range(60)}
    after = {name: [min(1.0, score + 0.1) for score in scores] for name, scores in before.items()}
    (pairing,) = compare(write_run(tmp_path / "a", before), write_run(tmp_path / "b", after)).pairings
    assert pairing.main_figure == "score"
    (score,) = [one for one in pairing.differences if one.figure == "score"]
    assert score.difference == pytest.approx(0.1, abs=0.01)
    assert 0 < score.low < score.difference < score.high and score.p < 1e-4
    assert not {"rate", "first"} & {one.figure for one in pairing.differences}


@given(QUERIES, st.floats(0.01, 1000))
def test_another_unit_of_the_score_changes_no_conclusion(queries: list[list[float]], unit: float) -> None:
    assume(any(score not in (0, 1) for scores in queries for score in scores))
    before, after = named(queries), named([[score * 0.5 for score in scores] for scores in queries])
    (plain,) = compare(table_of(graded_rows(before)), table_of(graded_rows(after)), examples=0).pairings
    found = plain.difference("score")
    assert found is not None
    assert found.low <= found.difference <= found.high
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
    larger = [named([[unit * score for score in held[name]] for name in held]) for held in (before, after)]
    (scaled,) = compare(*(table_of(graded_rows(held)) for held in larger), examples=0).pairings
    other = scaled.difference("score")
    if other is not None:
        assert (other.won, other.lost) == (found.won, found.lost)


def test_metrics_are_compared_one_by_one(tmp_path: Path) -> None:
    def style(shift: float) -> dict[str, dict[str, float]]:
        return {"style": {"score": shift}, "length": {"score": 10.0}}

    scores = {f"q{number}": [0.5, 0.25] for number in range(20)}
    runs = [write_run(tmp_path / str(shift), scores, evaluation_metrics=style(shift)) for shift in (0.2, 0.6)]
    (pairing,) = compare(*runs).pairings
    metric = pairing.difference("metric style")
    assert metric is not None and metric.difference == pytest.approx(0.4)
    length = pairing.difference("metric length")
    assert length is not None and (length.difference, length.p) == (0.0, 1.0)


# ── how scores are spread ────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(SCORES, min_size=1, max_size=200))
def test_every_score_is_in_one_bin(scores: list[float]) -> None:
    spread = score_spread(np.array([*scores, np.nan]))
    assert spread is not None
    assert sum(held.count for held in spread.bins) == spread.count == len(scores)
    slack = 1e-9 * (spread.highest - spread.lowest)  # the ends of bins are round: 0 where the lowest score is -1e-294
    assert spread.bins[0].low - slack <= spread.lowest <= spread.median
    assert spread.median <= spread.highest <= spread.bins[-1].high + slack


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(2, 12))
def test_steps_are_round_few_and_reach_both_ends(low: float, span: float, most: int) -> None:
    steps = round_steps(low, low + span, most)
    assert 2 <= len(steps) <= most + 1
    slack = 1e-6 * (abs(low) + span + 1e-6)
    assert steps[0] <= low + slack and steps[-1] >= low + span - slack
    widths = np.diff(steps)
    assert np.allclose(widths, widths[0])
    mantissa = f"{widths[0]:.3e}".partition("e")[0].rstrip("0").rstrip(".")  # beside a million, few digits are left
    assert mantissa in ("1", "2", "2.5", "5")


def test_variances_of_equal_scores_are_zero() -> None:
    experiment = load(table_of(graded_rows({"a": [0.1, 0.1, 0.1], "b": [0.2, 0.4]})))
    assert QueryScores.of(experiment, experiment.scores).variance() == pytest.approx([0.0, 0.01])
    assert QueryScores.of(experiment, experiment.scores).variance()[0] == 0.0
