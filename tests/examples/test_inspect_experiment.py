# SPDX-License-Identifier: Apache-2.0
"""The script that scripts know: it is the command."""

from __future__ import annotations

from pathlib import Path

from tests.analysis.experiments import table, write
from tests.examples.commands import python, reward_kit

SCRIPT = Path(__file__).parents[2] / "examples" / "best_of_n" / "inspect_experiment.py"


def test_the_script_is_the_command(tmp_path: Path) -> None:
    told: list[str | Path] = [write(tmp_path / "run.parquet", table({"a": "10", "b": "11"})), "--format", "json"]
    found = python(SCRIPT, *told)
    assert found == reward_kit("inspect", *told) and found.startswith("{")
