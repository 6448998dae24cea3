# SPDX-License-Identifier: Apache-2.0
"""Merging run directories: every item once, verdicts before failures, parts of one run only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.errors import ConfigError, StorageError
from reward_kit.evaluation import evaluate
from reward_kit.execution.merge import merge_runs
from reward_kit.storage.journal import Journal

ROWS = [{"id": f"s{number}", "user_query": "?", "assistant_response": str(number % 2)} for number in range(6)]


def is_one(response: str) -> float:
    return float(response)


def fails_on_one(response: str, ready: bool = True) -> float:
    if response == "1" and not Path("ready").exists():
        raise ValueError("not ready")
    return 1.0


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_parts_of_an_ordinary_run_merge_into_the_whole(tmp_path: Path) -> None:
    evaluate(ROWS[:4], is_one, output_dir=tmp_path / "a")
    evaluate(ROWS[2:], is_one, output_dir=tmp_path / "b")
    whole = evaluate(ROWS, is_one, output_dir=tmp_path / "c")
    summary = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert (summary["records"], summary["mean_score"]) == (6, whole.summary["mean_score"])
    merged = lines(tmp_path / "merged" / "results.jsonl")
    assert {row["id"] for row in merged} == {row["id"] for row in ROWS} and len(merged) == 6
    assert len(lines(tmp_path / "merged" / "rollouts.jsonl")) == 6


def test_what_passed_in_the_parts_has_passed_in_the_whole(tmp_path: Path) -> None:
    settings = {"pass_threshold": 0.0}
    for name, rows in (("a", ROWS[:3]), ("b", ROWS[3:])):
        evaluate(rows, is_one, output_dir=tmp_path / name, reward_settings=settings)
    summary = merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert (summary["passed"], summary["pass_threshold"]) == (6, 0.0)
    again = merge_runs([tmp_path / "merged"], tmp_path / "again")
    assert (again["passed"], again["pass_threshold"]) == (6, 0.0)


def test_a_verdict_counts_before_a_failure_whichever_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert evaluate(ROWS, fails_on_one, output_dir=tmp_path / "a").failed == 3
    (tmp_path / "ready").touch()
    assert evaluate(ROWS, fails_on_one, output_dir=tmp_path / "b").failed == 0
    for order in (["a", "b"], ["b", "a"]):
        summary = merge_runs([tmp_path / name for name in order], tmp_path / "-".join(order))
        assert (summary["judged"], summary["failed"]) == (6, 0)


def test_parts_of_different_runs_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    evaluate(ROWS, is_one, output_dir=tmp_path / "a")
    evaluate(ROWS, fails_on_one, output_dir=tmp_path / "b", params={"ready": False})
    with pytest.raises(StorageError, match="parts of one run"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"holds no results.jsonl"):
        merge_runs([tmp_path / "empty"], tmp_path / "merged")


def test_an_entry_written_elsewhere_is_the_same_line(tmp_path: Path) -> None:
    evaluate(ROWS, is_one, output_dir=tmp_path / "a")
    with Journal(tmp_path / "a" / "results.jsonl", read_only=True) as source, Journal(tmp_path / "copy") as copy:
        copy.append([*source.entries()])
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "a" / "results.jsonl").read_bytes()
