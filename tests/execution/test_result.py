"""What a run hands back."""

from __future__ import annotations

from pathlib import Path

import orjson

from reward_kit.execution.counters import RunCounters
from reward_kit.execution.result import RunResult
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import Entry, Head, Status


def entry(name: str, position: int, status: Status, score: float | None) -> Entry:
    return Entry(Head(name, 0, position, "ab", status, None), orjson.dumps({"evaluation_score": score}))


def test_the_rows_of_an_interrupted_run_are_one_an_answer_and_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "results.jsonl") as results:
        results.append([entry("b", 1, "ok", 0.5), entry("a", 0, "retry", None), entry("a", 0, "ok", 1.0)])
    result = RunResult("interrupted", tmp_path, {}, RunCounters())
    assert [(row["id"], row["evaluation_score"]) for row in result.rows()] == [("a", 1.0), ("b", 0.5)]
