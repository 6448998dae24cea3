# SPDX-License-Identifier: Apache-2.0
"""`reward-kit export`: from any run or table to training data, with counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reward_kit.evaluation import evaluate
from reward_kit.execution.best_of_n import BestOfN
from reward_kit.execution.best_of_n.experiment import load_experiment
from tests.cli_commands.conftest import Call
from tests.loopback.experiments import experiment

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("experiment")
    values = experiment(home)
    BestOfN(load_experiment(values)).run()
    return Path(values["output"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [
        ("sft", 9, {"messages"}),
        ("preference", 9, {"prompt", "chosen", "rejected", "margin"}),
        ("rm", 9, {"chosen", "rejected", "margin"}),
        ("kto", 21, {"prompt", "completion", "label"}),
        ("grpo", 9, {"prompt", "ground_truth", "pass_rate", "num_candidates"}),
    ],
)
def test_each_shape_comes_out_the_same_from_the_table_and_the_run(
    call: Call, tmp_path: Path, table: Path, shape: str, rows: int, columns: set[str]
) -> None:
    said = call("export", table, "--to", shape, "-o", "a.jsonl")
    assert said.code == 0 and f"{rows} rows → a.jsonl" in said.err and "27 candidates" in said.err
    found = lines(tmp_path / "a.jsonl")
    assert found[0].keys() - {"query_id", "split", "tools"} == columns
    assert call("export", table.with_name("run.run"), "--to", shape, "-o", "b.jsonl").code == 0
    assert lines(tmp_path / "b.jsonl") == found
    assert call("export", table, "--to", shape, "-o", "c.parquet").code == 0


def test_the_results_of_an_ordinary_run_will_do(call: Call, tmp_path: Path) -> None:
    rows = [{"id": "a", "user_query": "1?", "assistant_response": ["yes", "no"]}]
    evaluate(rows, lambda response: float(response == "yes"), output_dir=tmp_path / "run")
    told = json.loads(call("export", "run/results.jsonl", "--to", "preference", "-o", "p.jsonl", "--json").out)
    assert told["rows"] == 1
    (pair,) = lines(tmp_path / "p.jsonl")
    assert (pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("yes", "no")
    assert "tools" not in pair


def test_filters_reach_the_rows(call: Call, tmp_path: Path, table: Path) -> None:
    assert call("export", table, "--to", "grpo", "--split", "math", "-o", "a.jsonl").code == 0
    assert {row["split"] for row in lines(tmp_path / "a.jsonl")} == {"math"}
    assert call("export", table, "--to", "kto", "--threshold", "0.5", "-o", "b.jsonl").code == 0
    assert all(row["label"] for row in lines(tmp_path / "b.jsonl") if row["split"] == "code")
    inline = call("export", table, "--to", "sft", "--reasoning", "inline", "-o", "c.jsonl")
    assert inline.code == 0 and "<think>" in lines(tmp_path / "c.jsonl")[0]["messages"][-1]["content"]


def test_nothing_is_replaced_or_guessed(call: Call, tmp_path: Path, table: Path) -> None:
    (tmp_path / "a.jsonl").write_text("precious")
    assert "--overwrite" in call("export", table, "--to", "sft", "-o", "a.jsonl").sentence
    assert (tmp_path / "a.jsonl").read_text() == "precious"
    assert call("export", table, "--to", "sft", "-o", "a.jsonl", "--overwrite").code == 0
    assert "expected FILE.jsonl or FILE.parquet" in call("export", table, "--to", "sft", "-o", "a.txt").sentence
    empty = call("export", table, "--to", "grpo", "--min-pass-rate", "0.9", "-o", "e.jsonl")
    assert empty.code == 2 and "could be used" in empty.err and "9 queries outside the pass rates" in empty.err
