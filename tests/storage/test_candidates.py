# SPDX-License-Identifier: Apache-2.0
"""Judged answers, whatever holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError, StorageError
from reward_kit.evaluation import evaluate
from reward_kit.execution.best_of_n import BestOfN
from reward_kit.execution.best_of_n.experiment import load_experiment
from reward_kit.storage.candidates import Query, read_queries
from tests.loopback.experiments import experiment

pa = pytest.importorskip("pyarrow")


def in_thirds(response: str) -> float:
    if response == "broken":
        raise ValueError("no")
    return int(response[-1]) / 3


def a_run(home: Path, **settings: Any) -> Path:
    rows: list[dict[str, Any]] = [
        {
            "id": "a",
            "user_query": "1?",
            "ground_truth_for_eval": {"x": 1},
            "assistant_response": ["<think>t</think>3", "1"],
        },
        {"id": "b", "user_query": "2?", "system_prompt": "S", "assistant_response": ["broken", "3"], "split": "s"},
    ]
    evaluate(rows, in_thirds, output_dir=home / "run", **settings)
    return home / "run"


def seen(query: Query) -> list[tuple[int, str | None, str | None, bool | None]]:
    return [
        (c.candidate_idx, c.turns[-1]["content"] if c.turns else None, c.reasoning, c.is_verified)
        for c in query.candidates
    ]


def test_a_run_directory_and_its_results_say_the_same(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    a, b = read_queries(run)
    assert [a, b] == list(read_queries(run / "results.jsonl"))
    assert seen(a) == [(0, "3", "t", True), (1, "1", None, False)]
    assert seen(b) == [(0, "broken", None, None), (1, "3", None, True)]
    assert (a.ground_truth, b.split) == ('{"x":1}', "s")
    assert [turn["role"] for turn in b.prompt] == ["system", "user"]
    assert [candidate.candidate_idx for candidate in b.judged] == [1]


def test_the_threshold_is_the_runs_own_unless_one_is_given(tmp_path: Path) -> None:
    run = a_run(tmp_path, reward_settings={"pass_threshold": 0.3})
    assert [c.is_verified for c in next(read_queries(run)).candidates] == [True, True]
    assert [c.is_verified for c in next(read_queries(run, threshold=0.5)).candidates] == [True, False]


def test_the_table_and_the_run_of_an_experiment_say_the_same(tmp_path: Path) -> None:
    values = experiment(tmp_path)
    BestOfN(load_experiment(values)).run()
    table = list(read_queries(Path(values["output"])))
    assert table == list(read_queries(tmp_path / "results" / "run.run"))
    assert [query.id for query in table][::3] == ["math-0", "code-0", "tool_calling-0"]
    assert table[0].candidates[0].reasoning == "Add 0."
    calling = table[6]
    assert calling.tools is not None and "look_up" in calling.tools
    assert calling.candidates[0].turns[0]["tool_calls"][0]["function"]["name"] == "look_up"


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_tables_of_other_tools_are_read_by_their_names(tmp_path: Path) -> None:
    row = {"query_id": "q", "question": "1?", "candidate_idx": 0, "answer": "2", "verification_is_verified": True}
    (query,) = read_queries(write(tmp_path / "a.parquet", [row]))
    assert query.prompt == [{"role": "user", "content": "1?"}] and seen(query) == [(0, "2", None, True)]


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    row = {"query_id": "q", "query": "1?", "response": "2", "is_verified": True}
    rows = [row, {**row, "query_id": "other"}, row]
    with pytest.raises(StorageError, match="query 'q' are not next to each other"):
        list(read_queries(write(tmp_path / "mixed.parquet", rows)))
    with pytest.raises(StorageError, match="no column 'is_verified'"):
        list(read_queries(write(tmp_path / "less.parquet", [{"query_id": "q", "query": "?", "response": "2"}])))
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    with pytest.raises(StorageError, match="not readable as Parquet"):
        list(read_queries(tmp_path / "no.parquet"))
    with pytest.raises(ConfigError, match="There is no"):
        read_queries(tmp_path / "none")
    with pytest.raises(ConfigError, match=r"holds no results\.jsonl"):
        read_queries(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(StorageError, match="is not a line of a run"):
        list(read_queries(tmp_path / "other.jsonl"))
