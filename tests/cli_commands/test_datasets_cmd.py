# SPDX-License-Identifier: Apache-2.0
"""`reward-kit datasets`: rows as a run will see them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import main
from reward_kit.datasets.shapes import FORMATS

ROWS = [{"question": "1 + 1?", "answer": "2"}, {"question": "2 + 1?", "answer": "3"}]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"question": f"{n} + 1?", "answer": f"Add.\n#### {n + 1}"} for n in range(5)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "frage.csv").write_text("frage,antwort\nWie viel?,\n")
    config = "dataset: {path_or_name: sums.jsonl, prompt_template: 'Solve {{ question }}'}\nsystem_prompt: Be brief.\n"
    (tmp_path / "run.yaml").write_text(config)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as leave:
        main(["datasets", *arguments])
    captured = capsys.readouterr()
    assert (leave.value.code or 0) == code, captured.err
    return captured.out + captured.err


def write_benchmark(here: Path, name: str, dataset: str) -> None:
    folder = here / "conf" / "benchmark"
    folder.mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(f"# @package _global_\ndataset: {{{dataset}}}\n")


def test_rows_are_shown_with_the_shape_that_was_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "show", "sums.jsonl", "-n", "2")
    assert shown.startswith("Format gsm8k: ")
    assert shown.count("user: ") == 2
    assert "user: 1 + 1?" in shown and "ground truth: 2" in shown


def test_columns_are_mapped_as_in_a_config_and_an_empty_cell_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--column-mapping", "user_query=frage", "--column-mapping", "ground_truth=antwort")
    (line,) = printed(capsys, "show", "frage.csv", *given, "--json").splitlines()
    sample = json.loads(line)
    assert (sample["messages"][0]["content"], sample["ground_truth"]) == ("Wie viel?", "")
    assert "expected NEW=OLD" in printed(capsys, "show", "frage.csv", "--column-mapping", "frage", code=2)


def test_a_config_is_shown_as_its_run_will_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "show", "run.yaml", "-n", "1")
    assert "system: Be brief." in shown and "user: Solve 0 + 1?" in shown
    assert "user: 0 + 1?" in printed(capsys, "show", "run.yaml", "dataset.prompt_template=null", "-n", "1")
    assert "only a YAML config or a benchmark takes" in printed(capsys, "show", "sums.jsonl", "a=1", code=2)


@pytest.mark.parametrize("name", ["capitals", "+benchmark=capitals", "benchmark=capitals"])
def test_a_benchmark_is_shown_with_its_own_prompt(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_benchmark(here, "capitals", "path_or_name: sums.jsonl, prompt_template: 'Solve {{ question }}'")
    shown = printed(capsys, "show", name, "dataset.max_samples=2", "-n", "5")
    assert shown.count("user: Solve ") == 2 and "ground truth: 2" in shown


def test_a_file_goes_before_a_benchmark_of_the_same_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_benchmark(here, "sums.jsonl", "path_or_name: frage.csv")
    assert "user: 1 + 1?" in printed(capsys, "show", "sums.jsonl")


def test_a_benchmark_that_does_not_exist_is_no_dataset_of_hugging_face(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "show", "+benchmark=gsm9k", code=2)
    assert "There is no benchmark 'gsm9k' (did you mean 'gsm8k'?). There are: " in said and "gsm8k" in said


def test_a_dataset_without_a_question_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "show", "frage.csv", code=2)
    assert "`dataset.column_mapping` can rename one, e.g. `dataset.column_mapping={user_query: frage}`" in said


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "around",
    [{"data": ROWS}, {"version": "1", "examples": ROWS}, {"a \"b\" 'c'": ROWS, "test": ROWS}, {"data.x": ROWS}],
)
def test_rows_inside_one_object_are_refused_with_the_line_that_takes_them_out(
    around: dict[str, Any], indent: int | None, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "one.json").write_text(json.dumps(around, indent=indent))
    said = printed(capsys, "show", "one.json", code=2)
    line = said.partition(" write `")[2].partition("` and name that file")[0]
    assert line.startswith("jq -c ") and line.endswith(" FILE > ROWS.jsonl")
    if shutil.which("jq"):
        subprocess.run(line.replace("FILE", "one.json"), shell=True, check=True, cwd=here)
        assert "user: 1 + 1?" in printed(capsys, "show", "ROWS.jsonl")


def test_a_row_that_does_not_say_what_is_right_is_shown_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "none.jsonl").write_text('{"question": "1 + 1?"}\n')
    assert "ground truth: there is none" in printed(capsys, "show", "none.jsonl")
    (here / "two.jsonl").write_text('{"prompt": "1 + 1?", "answer": "2", "solution": "1 + 1 = 2"}\n')
    said = printed(capsys, "show", "two.jsonl", code=2)
    assert "unclear what is right: 'answer' or 'solution'" in said
    assert "`dataset.column_mapping={ground_truth: answer}`" in said
    shown = printed(capsys, "show", "two.jsonl", "--column-mapping", "ground_truth=solution")
    assert "ground truth: 1 + 1 = 2" in shown


def test_every_format_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = [line.split()[0] for line in printed(capsys, "formats").splitlines()]
    assert set(listed) == set(FORMATS) - {"auto"}
