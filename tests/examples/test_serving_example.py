# SPDX-License-Identifier: Apache-2.0
"""The example of one server and three trainers, run as its README says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_three_trainers_and_a_program_are_told_the_same() -> None:
    command = [sys.executable, str(ROOT / "examples" / "serving_example" / "run.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    answers = [lines[start : start + 5] for start in range(0, len(lines), 5)]
    right, wrong, unclear = ([line.partition(" ")[2].strip() for line in group[1:]] for group in answers)
    assert right == ["1", "1", "1", "1, it says 42"]
    assert wrong == ["0", "0", "0", "0, it says 41"]
    assert all(line.startswith("not judged (500") for line in unclear[:3])
    assert unclear[3] == "no verdict: there is no number in the answer"
