# SPDX-License-Identifier: Apache-2.0
"""The training scripts of the examples train: one step, of a model made here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEHIND_A_SERVER = "serving_example"
"""Its reward is served by another process; tests/training/test_served_trainers.py trains with such a reward."""
EXAMPLES = sorted(
    {script.parent.name for script in (ROOT / "examples").glob("*/trl_grpo_integration.py")} - {BEHIND_A_SERVER}
)


def test_there_are_such_examples() -> None:
    assert {"coding_example", "group_reward_example", "judge_example", "math_example"} <= set(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_step_is_trained(example: str, tiny_model: Path, tmp_path: Path) -> None:
    script = ROOT / "examples" / example / "trl_grpo_integration.py"
    options = ["--steps", "1", "--generations", "2", "--tokens", "4", "--output", str(tmp_path / "out")]
    command = [sys.executable, str(script), "--model", str(tiny_model), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert " in the last of 1" in done.stdout and "mean reward: nothing" not in done.stdout
    assert "0 completions could not be judged" in done.stdout
    assert (tmp_path / "out" / "model.safetensors").is_file()
