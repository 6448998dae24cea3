# SPDX-License-Identifier: Apache-2.0
"""The shell example, as its README runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.examples.commands import python, reward_kit
from tests.execution.shell_support import lines, require_namespaces, summary, write_rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "shell_tasks"


def run(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "generation_separated.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=100, check=False)


def test_the_script_takes_tasks_to_figures(tmp_path: Path) -> None:
    require_namespaces()
    told: list[str | Path] = ["--model", "mock", "--dataset", EXAMPLE / "dataset.jsonl", "-n", "4", "-o", tmp_path]
    python(EXAMPLE / "generation_separated.py", *told)
    figures = summary(tmp_path)
    assert (figures["judged"], figures["successful_samples"], figures["infrastructure_errors"]) == (32, 28, 0)
    assert {row["difficulty_level"] for row in lines(tmp_path / "results.jsonl")} == {1, 2, 3}


def test_the_command_that_goes_on_names_the_subcommand(tmp_path: Path) -> None:
    require_namespaces()
    row = {"task": "Create 'a'.", "setup_commands": ["false"], "success_condition": "test -e a"}
    done = run("--model", "mock", "--dataset", write_rows(tmp_path / "tasks.jsonl", [row]), home=tmp_path)
    again = f"reward-kit shell --model mock --dataset {tmp_path / 'tasks.jsonl'} --retry-failed"
    assert f"  {again}\n" in done.stderr, done.stderr


def test_a_solution_of_every_task_is_judged_right(tmp_path: Path) -> None:
    require_namespaces()
    tasks = lines(EXAMPLE / "dataset.jsonl")
    rows = [{**row, "generated_command": row["reference_command"]} for row in tasks]
    file = write_rows(tmp_path / "commands.jsonl", rows)
    python(EXAMPLE / "generation_separated.py", "--phase", "execution", "--commands-file", file, "-o", tmp_path / "out")
    assert summary(tmp_path / "out")["success_rate"] == 1.0


def test_it_takes_the_flags_of_the_command() -> None:
    assert python(EXAMPLE / "generation_separated.py", "--help") == reward_kit("shell", "--help")
