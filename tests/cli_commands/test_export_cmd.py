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
from tests.agent.recorded_episodes import walk, write_results
from tests.agent.worlds import Model, calls, says
from tests.agent.worlds import call as made
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


@pytest.mark.parametrize("name", ["results.jsonl", "rollouts.jsonl", "episodes.jsonl", "link.jsonl"])
def test_no_file_of_a_run_is_replaced_or_made(call: Call, tmp_path: Path, name: str) -> None:
    rows = [{"id": "a", "user_query": "1?", "assistant_response": ["yes", "no"]}]
    evaluate(rows, lambda response: float(response == "yes"), output_dir=tmp_path / "run")
    (tmp_path / "run" / "link.jsonl").symlink_to("results.jsonl")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").glob("*")}
    said = call("export", "run", "--to", "kto", "-o", f"run/{name}", "--overwrite")
    assert said.code == 2 and "is a file of the run itself, and stays as it is" in said.sentence
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").glob("*")} == before
    assert call("export", "run", "--to", "kto", "-o", "run/kto.jsonl").code == 0


def test_no_file_of_a_run_in_a_store_is_replaced(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    rows = [{"id": "a", "user_query": "1?", "assistant_response": ["yes", "no"]}]
    evaluate(rows, lambda response: float(response == "yes"), output_dir=tmp_path / "run")
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    place = f"file://{tmp_path / 'run'}"
    said = call("export", place, "--to", "kto", "-o", f"{place}/results.jsonl", "--overwrite")
    assert said.code == 2 and "is a file of the run itself" in said.sentence
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before
    (tmp_path / "elsewhere").mkdir()
    assert call("export", place, "--to", "kto", "-o", f"file://{tmp_path}/elsewhere/results.jsonl").code == 0


def test_the_source_is_not_replaced(call: Call, tmp_path: Path, table: Path) -> None:
    copy = tmp_path / "answers.parquet"
    copy.write_bytes(table.read_bytes())
    said = call("export", copy, "--to", "sft", "-o", "answers.parquet", "--overwrite")
    assert said.code == 2 and "--output is the source itself" in said.sentence
    assert copy.read_bytes() == table.read_bytes()


@pytest.mark.parametrize("shape", ["steps", "episodes"])
def test_episodes_come_with_the_credit_of_each_step(call: Call, tmp_path: Path, shape: str) -> None:
    write_results(
        tmp_path / "run",
        walk("rd", "AB", score=1.0),
        walk("dd", "AC", score=0.0, index=1),
        walk("r", "A", score=None, index=2),
    )
    said = call("export", "run", "--to", shape, "--gamma", "1", "-o", "a.jsonl")
    assert said.code == 0 and "1 not judged" in said.err and "3 episodes" in said.err
    found = lines(tmp_path / "a.jsonl")
    steps = found if shape == "steps" else [step for row in found for step in row["steps"]]
    assert [step["advantage"] for step in steps] == [1.0, 0.5, -1.0, -0.5]

    parquet = pytest.importorskip("pyarrow.parquet")
    assert call("export", "run", "--to", shape, "--gamma", "1", "-o", "a.parquet").code == 0
    (kept,) = {json.dumps(without_nothing(row)) for row in parquet.read_table(tmp_path / "a.parquet").to_pylist()[:1]}
    assert json.loads(kept) == without_nothing(found[0])


@pytest.mark.parametrize("shape", ["steps", "episodes"])
@pytest.mark.parametrize("world", ["Account", "Walk"], ids=["tools", "no tools"])
def test_a_parquet_file_holds_what_json_lines_hold(call: Call, tmp_path: Path, world: str, shape: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    script = [calls(made("deposit", {"amount": 3})), says("Done.")] if world == "Account" else [says("right")] * 5
    evaluate(
        [{"prompt": "Go."}], lambda messages: 1.0, model=Model(script), n=2, output_dir=tmp_path / "run",
        agent={"environment": f"tests.agent.worlds:{world}"},
    )  # fmt: skip
    for kind in ("jsonl", "parquet"):
        assert call("export", "run", "--to", shape, "-o", f"a.{kind}").code == 0
    found = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    written = lines(tmp_path / "a.jsonl")
    assert [without_nothing(tools_read(row)) for row in found] == [without_nothing(row) for row in written]
    assert ("tools" in json.dumps(written)) is (world == "Account")


def tools_read(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the schemas of its tools, which Parquet holds as text."""
    steps = {"steps": [*map(tools_read, row["steps"])]} if row.get("steps") else {}
    return {**row, **steps, **({"tools": json.loads(row["tools"])} if row.get("tools") else {})}


def without_nothing(value: Any) -> Any:
    """A row without fields that hold nothing: Parquet has a column for each field of any message."""
    if isinstance(value, dict):
        return {name: without_nothing(held) for name, held in value.items() if held is not None}
    return [without_nothing(part) for part in value] if isinstance(value, list) else value


def test_credit_is_computed_as_it_was_asked_for(call: Call, tmp_path: Path) -> None:
    write_results(tmp_path / "run", walk("rd", "AB", score=1.0), walk("dd", "AC", score=0.0, index=1))

    def advantages(*options: str) -> list[float]:
        assert call("export", "run", "--to", "steps", "--overwrite", "-o", "a.jsonl", *options).code == 0
        return [row["advantage"] for row in lines(tmp_path / "a.jsonl")]

    assert advantages("--credit", "rloo") == [1.0, 1.0, -1.0, -1.0]
    assert advantages("--omega", "0") == [0.5, 0.5, -0.5, -0.5]
    assert advantages("--gamma", "0.5") == [0.75, 0.5, -0.75, -0.5]
    assert advantages("--mode", "mean_std_norm", "--omega", "0")[0] == pytest.approx(0.5**0.5, abs=1e-5)
    assert call("export", "run", "--to", "steps", "--credit", "luck", "-o", "b.jsonl").code == 2


def test_a_table_holds_no_episodes(call: Call, table: Path) -> None:
    assert "holds no results.jsonl" in call("export", table, "--to", "steps", "-o", "a.jsonl").sentence
    assert "holds no episodes" in call("export", table.with_name("run.run"), "--to", "steps", "-o", "a.jsonl").sentence
