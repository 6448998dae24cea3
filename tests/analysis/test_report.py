# SPDX-License-Identifier: Apache-2.0
"""A whole report, and the parts that only count: coverage, spending, the queries worth reading."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import (
    Report,
    analyse,
    as_csv,
    as_json,
    as_markdown,
    compare,
    contested_queries,
    coverage,
    hardest_queries,
    spending,
)
from reward_kit.analysis.present.one_query import view_query
from reward_kit.analysis.spending import quantiles
from reward_kit.errors import DatasetError
from tests.analysis.experiments import rows_of, simulated, table, table_of, write


def mixed() -> pa.Table:
    rows = rows_of(simulated(1, queries=40, size=4, missing=0.1), cost=0.01, model="small", finish_reason="stop")
    rows += rows_of(simulated(2, queries=20, size=4), split="code", cost=0.02, model="small", finish_reason="length")
    return table_of(rows, model="small", notes="a first try | with a bar")


def test_the_parts_of_a_report_agree() -> None:
    report = analyse(mixed())
    assert [figures.split for figures in report.splits] == ["math", "code"]
    assert report.overall.records == sum(figures.records for figures in report.splits) == 240
    assert report.overall.cost == pytest.approx(160 * 0.01 + 80 * 0.02)
    assert {point.pass_at_k.count for point in report.curve} == {report.coverage.complete_queries}
    for figures in (*report.splits, report.overall):
        rates = [figures.first, figures.majority, figures.best_by_score, figures.any]
        assert all(rate is not None and 0 <= rate.low <= rate.value <= rate.high <= 1 for rate in rates)
        assert figures.best_by_score == figures.any
    assert report.choosing[0].majority is not None
    assert report.choosing[0].majority.value == pytest.approx(report.curve[0].pass_at_k.value)
    assert [point.k for point in report.choosing] == [1, 2, 4]
    assert any("best-by-score is the oracle" in note for note in report.notes)


def test_one_split_is_the_whole() -> None:
    report = analyse(table({"a": "10"}))
    assert report.splits == ()
    assert (report.overall.split, report.overall.queries) == ("all", 1)


def test_a_report_on_nothing_judged_says_so() -> None:
    report = analyse(table({"a": "..", "b": "."}))
    assert (report.overall.rate, report.overall.any, report.curve, report.optimal) == (None, None, (), None)
    assert report.coverage.failures == {"RewardTimeoutError": 3}
    assert "Not judged" in as_markdown(report)


def test_where_nothing_was_verified_nothing_is_said_to_pay() -> None:
    assert "Optimal N: not known" in as_markdown(analyse(table({"a": "0000", "b": "00"})))
    assert "Optimal N: at least 2" in as_markdown(analyse(table({"a": "10", "b": "01"})))


def test_metadata_with_parts_of_its_own_is_named_but_not_shown() -> None:
    held = table_of(rows_of({"a": "1"}), config='{"seed": 1}', dataset="d", notes="[sic] noted")
    told = as_markdown(analyse(held))
    assert "| dataset | d |" in told
    assert "| notes | [sic] noted |" in told
    assert "| also noted | config (--format json shows them) |" in told
    assert '"seed"' not in told


def test_votes_can_be_left_out_and_a_sample_is_told() -> None:
    assert analyse(mixed(), vote_limit=0).overall.majority is None
    sampled = analyse(mixed(), vote_limit=40)
    assert sampled.votes_sampled is not None
    assert any(f"sample of {sampled.votes_sampled} queries" in note for note in sampled.notes)


# ── coverage and spending ────────────────────────────────────────────────────────────────────────────────────────────


def test_what_there_is_and_what_is_missing_is_counted() -> None:
    found = coverage(table({"a": "10.", "b": "11", "c": ".."}, finish_reason="stop", model="m"))
    assert (found.records, found.queries, found.judged, found.queries_judged) == (7, 3, 4, 2)
    assert (found.candidates, found.complete_queries) == ((2, 3), 0)
    assert found.failures == {"RewardTimeoutError": 3}
    assert (found.finish_reasons, found.models) == ({"stop": 7}, ("m",))


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        ({"error_type": "ProviderError", "error_stage": "generate"}, {"generate: ProviderError": 2}),
        (
            {"error_type": lambda _, index, __: ["A", "B"][index], "error_stage": "score"},
            {"score: A": 1, "score: B": 1},
        ),
        ({"error": "something went wrong"}, {"other": 2}),
        ({"error": None}, {"not judged, no reason noted": 2}),
        ({"error": "two words: and more"}, {"other": 2}),
    ],
)
def test_failures_are_named_by_their_kind(columns: dict[str, Any], kinds: dict[str, int]) -> None:
    assert coverage(table({"a": ".."}, **columns)).failures == kinds


def test_without_a_column_for_errors_they_are_counted_all_the_same() -> None:
    assert coverage(pa.table({"query_id": ["a"], "is_verified": pa.nulls(1)})).failures == {
        "not judged, no reason noted": 1
    }


def test_quantiles_are_over_what_was_noted() -> None:
    found = spending(table({"a": "0" * 100}, latency_ms=lambda _, index, __: None if index == 99 else float(index)))
    assert set(found) == {"latency_ms"}
    assert (found["latency_ms"].count, found["latency_ms"].p50, found["latency_ms"].largest) == (99, 49.0, 98.0)


@given(st.lists(st.integers(0, 50) | st.floats(-5, 5_000_000), min_size=1, max_size=30))
def test_quantiles_are_those_of_numpy_however_they_are_found(values: list[float]) -> None:
    for held in (np.array(values, dtype=np.float64), np.floor(np.abs(values))):
        found = quantiles(np.append(held, np.nan))
        expected = np.quantile(held, (0.5, 0.9, 0.99)).tolist()
        assert [found.p50, found.p90, found.p99] == pytest.approx(expected)
        assert (found.count, found.largest) == (len(held), held.max())
        assert found.total == pytest.approx(held.sum())


def test_a_request_that_several_candidates_shared_is_billed_once() -> None:
    shared = table(
        {"a": "11", "b": "00"},
        prompt_tokens=lambda _, index, __: None if index else 10,
        cost=lambda _, index, __: 0.0 if index else 0.5,
    )
    assert (spending(shared)["cost"].count, spending(shared)["cost"].p50, spending(shared)["cost"].total) == (
        2,
        0.5,
        1.0,
    )
    cached = table({"a": "11"}, prompt_tokens=10, cost=0.0)
    assert spending(cached)["cost"].count == 2


# ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_hardest_and_the_most_contested() -> None:
    source = table({"easy": "1111", "hard": "0000", "harder": "00000", "half": "1100", "some": "1000", "none": "...."})
    assert [(line.query_id, line.verified, line.judged) for line in hardest_queries(source, 3)] == [
        ("harder", 0, 5), ("hard", 0, 4), ("some", 1, 4),
    ]  # fmt: skip
    assert [line.query_id for line in contested_queries(source)] == ["half", "some"]
    assert hardest_queries(source, 1)[0].excerpt == "What is harder?"
    assert hardest_queries(table({"a": "."})) == []
    assert hardest_queries(source, 0) == []


def test_one_query_is_found_by_its_id_or_the_beginning_of_it(tmp_path: Path) -> None:
    rows = rows_of({"abc1": "1.", "abd2": "0"}, verification_reason="compared") + rows_of({"abc1": "0"}, split="code")
    path = write(tmp_path / "run.parquet", table_of(rows), row_group_size=1)
    views = view_query(path, "abc1")
    assert [(view.split, view.verified, view.judged) for view in views] == [("math", 1, 1), ("code", 0, 1)]
    assert [candidate.is_verified for candidate in views[0].candidates] == [True, None]
    assert views[0].candidates[1].answer_and_reason.endswith("RewardTimeoutError: it took too long")
    assert views[0].candidates[0].heading == "#0 verified · score 1"
    assert (views[0].query, views[0].ground_truth) == ("What is abc1?", "4")
    assert [view.query_id for view in view_query(path, "abd")] == ["abd2"]
    with pytest.raises(DatasetError, match=r"2 queries .* begin with 'ab'"):
        view_query(path, "ab")
    with pytest.raises(DatasetError, match=r"no query 'abc9'. Did you mean 'abc1'\?"):
        view_query(path, "abc9")
    with pytest.raises(DatasetError, match="Its ids look like 'abc1'"):
        view_query(path, "zzz")


def test_a_long_answer_is_shown_by_its_ends() -> None:
    rows = rows_of({"a": "1"}, response="begin " + "x" * 9_000 + " end", tool_calls='[{"name": "f"}]')
    told = view_query(table_of(rows), "a")[0].candidates[0].answer_and_reason
    assert told.startswith("begin")
    assert "characters …" in told
    assert told.endswith('[{"name": "f"}]')
    assert len(told) < 2_000


# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_holds_every_figure() -> None:
    report = analyse(mixed())
    told = json.loads(as_json(report))
    assert report.overall.rate is not None
    assert told["overall"]["rate"] == asdict(report.overall.rate)
    assert [point["k"] for point in told["curve"]] == [1, 2, 3, 4]
    assert told["metadata"]["notes"] == "a first try | with a bar"
    assert json.loads(as_json(compare(mixed(), mixed())))["pairings"][0]["common"] == 60


def test_csv_is_one_line_a_figure() -> None:
    report = analyse(mixed())
    lines = list(csv.DictReader(io.StringIO(as_csv(report))))
    rate = next(line for line in lines if (line["split"], line["figure"]) == ("all", "verified"))
    assert report.overall.rate is not None
    assert (float(rate["value"]), float(rate["low"])) == (report.overall.rate.value, report.overall.rate.low)
    assert {line["k"] for line in lines if line["figure"] == "pass@k"} == {"1", "2", "3", "4"}
    paired = list(csv.DictReader(io.StringIO(as_csv(compare(mixed(), mixed())))))
    assert {line["figure"] for line in paired} == {"rate", "first", "pass@3"}
    assert all(line["low"] < line["high"] for line in paired if float(line["difference"]) > 0)


def test_markdown_tables_are_tables() -> None:
    for found in (analyse(mixed()), compare(mixed(), mixed()), compare(mixed(), table({"other": "1"}))):
        text = as_markdown(found)
        blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
        assert blocks
        for block in blocks:
            assert len({line.replace("\\|", "").count("|") for line in block}) == 1, block
    assert "No overlap" in as_markdown(compare(mixed(), table({"other": "1"})))
    assert r"a first try \| with a bar" in as_markdown(analyse(mixed()))


def test_no_difference_is_told_without_its_interval() -> None:
    report: Report = analyse(mixed())
    told = json.loads(as_json(report))
    estimates = [found for found in _dictionaries(told) if "value" in found]
    assert estimates
    assert all({"low", "high"} <= found.keys() for found in estimates)
    differences = [
        found for found in _dictionaries(json.loads(as_json(compare(mixed(), mixed())))) if "difference" in found
    ]
    assert differences
    assert all(found["low"] <= found["difference"] <= found["high"] for found in differences)


def _dictionaries(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(found for held in value.values() for found in _dictionaries(held))]
    return [found for held in value for found in _dictionaries(held)] if isinstance(value, list) else []
