# SPDX-License-Identifier: Apache-2.0
"""The math example: its reward, its dataset, its converter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.models import EvaluateResult
from reward_kit.utils.module_loader import load_function

EXAMPLE = Path(__file__).parents[2] / "examples" / "math_example"


def judge(text: str, ground_truth: str) -> EvaluateResult:
    evaluate = load_function(f"{EXAMPLE / 'main.py'}:evaluate")
    result = evaluate(messages=[{"role": "assistant", "content": text}], ground_truth=ground_truth)
    assert isinstance(result, EvaluateResult)
    return result


def test_the_reward_is_for_the_right_number_and_notes_the_work() -> None:
    shown, stated, wrong = judge("3 + 4 = 7", "7"), judge("7 apples", "7"), judge("3 + 4 = 8", "7")
    assert [result.score for result in (shown, stated, wrong)] == [1.0, 1.0, 0.0]
    assert [result.metrics["shows_work"].score for result in (shown, stated, wrong)] == [1.0, 0.0, 1.0]


def test_every_problem_has_its_own_name_and_a_ground_truth_that_can_be_judged() -> None:
    rows = [json.loads(line) for line in (EXAMPLE / "dataset.jsonl").read_text().splitlines()]
    assert len(rows) == len({row["id"] for row in rows}) == len({row["messages"][-1]["content"] for row in rows})
    for row in rows:
        assert judge(f"= {row['ground_truth']}", row["ground_truth"]).score == 1.0
        assert row["messages"][-1]["role"] == "user"


def convert(source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "convert_dataset.py"), str(source), str(source.with_name("out.jsonl"))]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)


def test_the_converter_takes_the_number_behind_the_marks(tmp_path: Path) -> None:
    source = tmp_path / "gsm8k.jsonl"
    solved = {"question": "How many?", "answer": "500 + 500 = 1000\n#### 1,000"}
    source.write_text(json.dumps(solved) + "\n\n" + json.dumps({"question": "2+2?", "answer": "4", "id": 9}) + "\n")
    assert convert(source).returncode == 0
    first, second = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert first["ground_truth_for_eval"] == "1,000" and first["solution"] == "500 + 500 = 1000"
    assert second == {"id": "9", "user_query": "2+2?", "ground_truth_for_eval": "4"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_converter_reads_tables(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"data.{suffix}"
    if suffix == "csv":
        source.write_text('problem,answer\n"1, or 2?",1\n3?,3\n')
    else:
        pa = pytest.importorskip("pyarrow", reason="needs pip install 'reward-kit[parquet]'")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table({"problem": ["1, or 2?", "3?"], "answer": ["1", "3"]}), source)
    assert convert(source, "--question", "problem", "--limit", "1").returncode == 0
    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (row["user_query"], row["ground_truth_for_eval"]) == ("1, or 2?", "1")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    source = tmp_path / "data.jsonl"
    source.write_text('{"problem": "1?", "answer": "1"}\n')
    done = convert(source)
    assert done.returncode != 0 and "'question'" in done.stderr and "problem" in done.stderr
