# SPDX-License-Identifier: Apache-2.0
"""What a run hands back."""

from __future__ import annotations

from math import inf
from pathlib import Path

import orjson
import pytest

from reward_kit.errors import AnswersFailedError
from reward_kit.execution.counters import RunCounters
from reward_kit.execution.result import RunResult, RunStatus
from reward_kit.execution.run_summary import EstimateFigures, RunSummary
from reward_kit.statistics import Estimate, Interval
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Head, Status


def entry(name: str, position: int, status: Status, score: float | None) -> Entry:
    return Entry(Head(name, 0, position, "ab", status, None), orjson.dumps({"evaluation_score": score}))


def test_the_rows_of_an_interrupted_run_are_one_an_answer_and_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl") as results:
        results.append([entry("b", 1, "ok", 0.5), entry("a", 0, "retry", None), entry("a", 0, "ok", 1.0)])
    result = RunResult("interrupted", tmp_path, {}, RunCounters())
    assert [(row["id"], row["evaluation_score"]) for row in result.rows()] == [("a", 1.0), ("b", 0.5)]


# ── a result as it is handed to a script or a notebook ───────────────────────────────────────────────────────────────


def half(value: float, low: float | None, high: float | None) -> EstimateFigures:
    return {"value": value, "low": low, "high": high, "samples": 4}


SUMMARY: RunSummary = {
    "records": 8,
    "judged": 7,
    "failed": 1,
    "failures_by_kind": {"score: RewardError": 1},
    "failure_examples": {"score: RewardError": "it <b>broke</b>"},
    "mean_score": half(0.0024999999999999467, 0.001, 0.0041),
    "pass_at_k": {"1": half(0.25, 0.1, 0.4), "2": half(0.5, None, None)},
}


def judged(tmp_path: Path, summary: RunSummary = SUMMARY, status: RunStatus = "finished") -> RunResult:
    return RunResult(status, tmp_path, summary, RunCounters(), None if status == "finished" else "max_cost")


def test_the_mean_and_pass_at_k_have_their_intervals(tmp_path: Path) -> None:
    result = judged(tmp_path)
    assert result.interval == Interval(0.001, 0.0041)
    assert result.pass_at(1) == Estimate(0.25, 0.1, 0.4, 4)
    assert result.pass_at(2) == Estimate(0.5, -inf, inf, 4)
    with pytest.raises(ValueError, match="no pass@3 of this run: it is known for k from 1 to 2"):
        result.pass_at(3)


@pytest.mark.parametrize("bounds", [(None, None), (-inf, inf)], ids=["read back", "in memory"])
def test_one_sample_has_no_interval(tmp_path: Path, bounds: tuple[float | None, float | None]) -> None:
    assert judged(tmp_path, {"mean_score": half(1.0, *bounds)}).interval is None


def test_a_run_without_scores_has_no_mean_and_no_interval(tmp_path: Path) -> None:
    result = judged(tmp_path, {})
    assert (result.mean_score, result.interval) == (None, None)
    with pytest.raises(ValueError, match="nothing was judged"):
        result.pass_at(1)


def test_what_is_shown_is_short_rounded_and_harmless(tmp_path: Path) -> None:
    result = judged(tmp_path)
    assert repr(result) == (
        f"RunResult(finished: failed 1 of 8, mean score 0.002 (0.001–0.004), judged 7 of 8, {str(tmp_path)!r})"
    )
    table = result._repr_html_()
    for part in ("0.002 (0.001–0.004)", "pass@2", "0.500", "1 × score: RewardError", "it &lt;b&gt;broke"):
        assert part in table
    assert "<b>" not in table and "0.00249" not in table


def test_graded_scores_without_a_threshold_have_no_pass_rates_to_show(tmp_path: Path) -> None:
    graded: RunSummary = {
        "mean_score": half(0.4, 0.1, 0.8), "pass_rate": 0.0, "pass_threshold": 1.0,
        "pass_at_k": {"1": half(0.0, 0.0, 0.5)},
    }  # fmt: skip
    table = judged(tmp_path, graded)._repr_html_()
    assert "pass@1" not in table and "– (the scores are graded: set `reward.pass_threshold`)" in table
    assert judged(tmp_path, graded).pass_at(1).value == 0.0, "what is asked for by name is told"
    assert "pass@1" in judged(tmp_path, {**graded, "pass_threshold": 0.9})._repr_html_()
    split: RunSummary = {"pass_threshold": 0.9}
    assert "pass@1" in judged(tmp_path, {**graded, "splits": {"code": split}})._repr_html_()


def test_some_failures_may_be_allowed(tmp_path: Path) -> None:
    judged(tmp_path).raise_for_failures(allow=1 / 8)
    with pytest.raises(AnswersFailedError, match="1 of 8"):
        judged(tmp_path).raise_for_failures(allow=0.1)


def test_failures_are_raised_for_and_so_is_a_run_that_is_not_whole(tmp_path: Path) -> None:
    with pytest.raises(AnswersFailedError, match=r"1 of 8 answers failed \(score: RewardError\), such as: it <b>broke"):
        judged(tmp_path).raise_for_failures()
    whole: RunSummary = {"records": 1, "judged": 1, "failed": 0}
    judged(tmp_path, whole).raise_for_failures()
    with pytest.raises(AnswersFailedError, match=r"not complete: it was stopped\. max_cost"):
        judged(tmp_path, whole, "stopped").raise_for_failures()
