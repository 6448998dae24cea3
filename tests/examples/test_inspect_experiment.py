# SPDX-License-Identifier: Apache-2.0
"""The script that scripts know: it is the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.analysis.experiments import table, write

SCRIPT = Path(__file__).parents[2] / "examples" / "best_of_n" / "inspect_experiment.py"


def test_the_script_is_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "run.parquet", table({"a": "10", "b": "11"}))
    programs = [str(SCRIPT)], ["-m", "reward_kit", "inspect"]
    ours, theirs = (
        subprocess.check_output([sys.executable, *program, str(path), "--format", "json"], cwd=SCRIPT.parents[2])
        for program in programs
    )
    assert ours == theirs
