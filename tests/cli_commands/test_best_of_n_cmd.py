# SPDX-License-Identifier: Apache-2.0
"""`reward-kit best-of-n`: the file says, a flag that is given counts before it, and errors speak in flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reward_kit.doors import AT_BEST_OF_N
from tests.cli_commands.conftest import Call
from tests.loopback.endpoint import honest, serving
from tests.loopback.experiments import dataset, experiment, math_row, write_lines

parquet = pytest.importorskip("pyarrow.parquet")


def write(home: Path, name: str = "experiments/base.yaml", **values: Any) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(experiment(home, **values)))
    return path


def metadata(path: Path) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in parquet.read_schema(path).metadata.items()}


def test_the_file_alone_is_enough(call: Call, tmp_path: Path) -> None:
    said = call("best-of-n", "--config", write(tmp_path, notes="hello"))
    assert said.code == 0, said.err
    assert "tool_calling" in said.out and "results/run.parquet" in said.out, "the table is what `> log` keeps"
    known = metadata(tmp_path / "results" / "run.parquet")
    assert (known["notes"], known["total_records"]) == ("hello", "27")
    assert known["config_file"].endswith("experiments/base.yaml")


def test_a_flag_counts_also_where_it_says_what_the_default_is(call: Call, tmp_path: Path) -> None:
    default = AT_BEST_OF_N.defaults["generation.n"]
    file = write(tmp_path, num_candidates=2, max_queries=3)
    given = ["--num-candidates", str(default), "--temperature", "0.7", "--max-queries", "1", "--notes", ""]
    said = call("best-of-n", "-c", file, *given, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["records"] == 3 * default
    assert metadata(tmp_path / "results" / "run.parquet")["num_candidates"] == str(default)


def test_without_a_file_flags_are_enough(call: Call, tmp_path: Path) -> None:
    said = call(
        "best-of-n", "--dataset", dataset(tmp_path), "--splits", "math,code", "--model", "mock", "-n", "2",
        "--mock", "tests.loopback.experiments:answer", "--verifier", "code=tests.loopback.experiments:runs",
        "-o", "out.parquet", "--json", "--no-streaming", "--extra-body", '{"a": 1}',
    )  # fmt: skip
    assert said.code == 0, said.err
    assert json.loads(said.out)["splits"].keys() == {"math", "code"}
    assert (tmp_path / "out.run" / "rollouts.jsonl").exists()


def test_files_are_found_from_the_experiment_too(call: Call, tmp_path: Path) -> None:
    write_lines(tmp_path / "lab" / "data.jsonl", [math_row(1)])
    (tmp_path / "lab" / "judge.py").write_text("def judge(response):\n    return float('2' in response)\n")
    (tmp_path / "lab" / "model.py").write_text("def answer(messages, draw):\n    return 'It is 2.'\n")
    values = {
        "dataset": "data.jsonl", "splits": ["math"], "model": "mock", "mock": "model.py:answer", "num_candidates": 1,
        "verifiers": {"math": {"function_path": "judge.py:judge"}}, "output": "out.parquet",
    }  # fmt: skip
    (tmp_path / "lab" / "experiments").mkdir()
    (tmp_path / "lab" / "experiments" / "a.yaml").write_text(yaml.safe_dump(values))
    said = call("best-of-n", "--config", "lab/experiments/a.yaml", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["pass_rate"] == 1.0


def test_the_plan_is_told_by_split_and_nothing_is_made(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, prices={"mock": {"input": 1, "output": 2}})
    said = call("best-of-n", "-c", file, "--dry-run")
    assert said.code == 0 and "nothing was sent" in said.out and "tool_calling" in said.out
    told = json.loads(call("best-of-n", "-c", file, "--dry-run", "--json").out)
    assert told["rollouts"] == 27 and told["splits"]["math"]["requests"] == 3
    assert told["cost"] == pytest.approx(sum(split["cost"] for split in told["splits"].values()))
    assert not (tmp_path / "results").exists()


def test_a_budget_stops_it_with_a_code_of_its_own_and_the_same_command_goes_on(call: Call, tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        prices = {"m": {"input": 1000.0, "output": 1000.0}}
        file = write(tmp_path, model="m", base_url=endpoint.api_base, prices=prices, concurrency=1, max_tokens=5)
        stopped = call("best-of-n", "-c", file, "--max-cost", "0.1")
        assert stopped.code == 3 and "Run the same command again" in stopped.err and "Raise `--max-cost`" in stopped.out
        assert call("best-of-n", "-c", file, "--max-cost", "100").code == 0
        assert "Already complete" in call("best-of-n", "-c", file, "--max-cost", "100").out


@pytest.mark.parametrize(
    ("flags", "code", "complaint"),
    [
        (["--model", "nobody", "--max-cost", "1", "--base-url", "http://127.0.0.1:9/v1"], 2, "with `--prices`"),
        (["--splits", "math,stem"], 2, "Split 'stem' has no verifier"),
        (["--verifier", "code=coded"], 2, "no verifier 'coded'"),
        (["--verifier", "code=tests.loopback.experiments:gone"], 2, "has no attribute 'gone'"),
        (["--dataset", "nowhere.jsonl"], 2, "Correct `--dataset`"),
        (["--config", "nowhere.yaml"], 2, "Check --config"),
        (["--mock", "nowhere.py:x"], 2, "--mock"),
    ],
)
def test_errors_are_one_sentence_that_names_flags(
    call: Call, tmp_path: Path, flags: list[str], code: int, complaint: str
) -> None:
    said = call("best-of-n", "-c", write(tmp_path), *flags)
    assert (said.code, complaint in said.sentence) == (code, True), said.err


@pytest.mark.parametrize("flags", [["--verifier", "code"], ["--extra-body", "[1]"], ["--max-queries", "0"]])
def test_wrong_usage_is_said(call: Call, tmp_path: Path, flags: list[str]) -> None:
    assert call("best-of-n", "-c", write(tmp_path), *flags).code == 2


def test_an_output_that_exists_is_never_lost_silently(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path)
    assert call("best-of-n", "-c", file, "-q").code == 0
    other = call("best-of-n", "-c", file, "--temperature", "1")
    assert other.code == 1 and "temperature: 0.7 then, 1.0 now" in other.sentence and "--overwrite" in other.sentence
    rejudged = call("best-of-n", "-c", file, "--verifier", "code=tests.loopback.rewards:quick")
    assert rejudged.code == 1 and "--rescore" in rejudged.sentence
    assert call("best-of-n", "-c", file, "--verifier", "code=tests.loopback.rewards:quick", "--rescore").code == 0
    assert call("best-of-n", "-c", file, "--temperature", "1", "--overwrite").code == 0


def test_nothing_verified_is_a_failure(call: Call, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def judge(response):\n    raise ValueError('no')\n")
    file = write(tmp_path, splits="math", verifiers={"math": f"{tmp_path}/broken.py:judge"})
    assert call("best-of-n", "-c", file).code == 1
    column = parquet.read_table(tmp_path / "results" / "run.parquet").column("is_verified")
    assert column.null_count == len(column) == 9


def test_the_help_teaches(call: Call) -> None:
    said = call("best-of-n", "--help")
    assert said.code == 0
    for word in ("--config experiments/baseline.yaml", "--dry-run", "nothing is paid twice", "Exit codes"):
        assert word in " ".join(said.out.split())


def test_answers_that_the_dataset_has_are_verified_without_a_model(call: Call, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "What is 3 + 4?", "answer": "7", "model_answer": ["It is 7.", "It is 8."]},
        {"question": "What is 3 + 5?", "answer": "8", "model_answer": ["It is 8."]},
        {"question": "What is 3 + 6?", "answer": "9"},
    ]
    write_lines(tmp_path / "answered.jsonl", rows)
    given = ["--dataset", "answered.jsonl", "--splits", "math", "--response-column", "model_answer", "-o", "a.parquet"]
    plan = json.loads(call("best-of-n", *given, "--dry-run", "--json").out)
    assert (plan["rows"], plan["rollouts"], plan["to_score"], plan["requests"], plan["cost"]) == (2, 3, 3, 0, 0.0)
    said = call("best-of-n", *given)
    assert said.code == 0, said.err
    assert "answers in the column 'model_answer', no model" in said.err and "rows left out: 1" in said.out
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [(row["query"], row["response"], row["is_verified"]) for row in table] == [
        ("What is 3 + 4?", "It is 7.", True),
        ("What is 3 + 4?", "It is 8.", False),
        ("What is 3 + 5?", "It is 8.", True),
    ]  # fmt: skip
    known = metadata(tmp_path / "a.parquet")
    assert (known["num_candidates"], known["model"]) == ("2", "")
    assert json.loads(known["config"])["response_column"] == "model_answer"
    plan = json.loads(call("best-of-n", *given, "--dry-run", "--json").out)
    assert (plan["rollouts"], plan["on_disk"], plan["to_score"]) == (3, 3, 0)
    assert "Already complete" in call("best-of-n", *given).out
