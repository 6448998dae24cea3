# SPDX-License-Identifier: Apache-2.0
"""Progress: a line now and then in a log, two bars on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from reward_kit.execution.counters import RunCounters
from reward_kit.execution.progress import progress_line
from tests.cli_commands.conftest import write_config
from tests.loopback.runs import config, questions


def counters(**figures: object) -> RunCounters:
    made = RunCounters(expected=100)
    for name, value in figures.items():
        setattr(made, name, value)
    return made


def test_a_line_of_progress_says_both_stages_and_what_matters() -> None:
    line = progress_line(
        counters(
            found_rollouts=10,
            generated=40,
            found_results=10,
            judged=20,
            failed=5,
            score_sum=10.0,
            cached=3,
            cost=1.5,
            completion_tokens=900,
        )
    )
    for part in (
        "generated 50/100",
        "scored 35/100",
        "3 cached",
        "cost 1.5000",
        "mean 0.500",
        "5 failed",
        "tokens/s",
        "left",
    ):
        assert part in line


@pytest.mark.parametrize(
    ("phase", "shown", "hidden"), [("inference", "generated", "scored"), ("execution", "scored", "generated")]
)
def test_a_phase_shows_its_own_stage_only(phase: str, shown: str, hidden: str) -> None:
    line = progress_line(counters(phase=phase))
    assert shown in line
    assert hidden not in line


def test_an_unknown_total_is_not_invented() -> None:
    line = progress_line(counters(expected=None, judged=7))
    assert "scored 7 " in line
    assert "left" not in line


def test_a_run_on_a_terminal_shows_bars_and_leaves_the_table(tmp_path: Path) -> None:
    told = config(tmp_path, rows=questions(20), generation__mock={"latency_ms": 100})
    file = write_config(tmp_path, told)
    control, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-m", "reward_kit", "run", str(file)], cwd=tmp_path, stderr=terminal,
                          stdout=subprocess.PIPE, env=environment) as process:  # fmt: skip
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(control, 65536)
            except OSError:  # Linux says so where the other side is gone
                break
            if not part:
                break
            shown += part
        os.close(control)
        table = process.stdout.read() if process.stdout is not None else b""
    assert process.returncode == 0
    assert b"generated" in shown
    assert "━".encode() in shown
    assert b"20 of 20" in table and b"20 of 20" not in shown
