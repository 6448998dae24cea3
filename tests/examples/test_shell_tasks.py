# SPDX-License-Identifier: Apache-2.0
"""The shell example, as its README runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.execution.shell_support import lines, require_namespaces, summary, write_rows

EXAMPLE = Path(__file__).parents[2] / "examples" / "shell_tasks"


def run(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / "generation_separated.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=100, check=False)


def test_the_script_takes_tasks_to_figures(tmp_path: Path) -> None:
    require_namespaces()
    done = run("--model", "mock", "--dataset", EXAMPLE / "dataset.jsonl", "-n", "4", home=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = summary(tmp_path / "evaluation_results")
    assert (figures["judged"], figures["successful_samples"], figures["infrastructure_errors"]) == (32, 28, 0)
    assert {row["difficulty_level"] for row in lines(tmp_path / "evaluation_results" / "results.jsonl")} == {1, 2, 3}


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
    assert run("--phase", "execution", "--commands-file", file, home=tmp_path).returncode == 0
    assert summary(tmp_path / "evaluation_results")["success_rate"] == 1.0


def test_it_takes_the_flags_of_the_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    programs = [str(EXAMPLE / "generation_separated.py")], ["-m", "reward_kit", "shell"]
    ours, theirs = (
        subprocess.check_output([sys.executable, *program, "--help"], cwd=tmp_path, env=environment)
        for program in programs
    )
    assert ours == theirs
