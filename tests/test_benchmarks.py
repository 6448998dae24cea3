# SPDX-License-Identifier: Apache-2.0
"""The benchmarks keep working: each runs in small and prints its table. What they measure is not judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.report import Report, Row, as_markdown, as_text

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


WITH_A_CLUSTER = {"ray"}
"""Run by tests/cluster/test_benchmark.py."""


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in WITH_A_CLUSTER])
def test_each_benchmark_prints_its_table(name: str) -> None:
    prints_its_table(name)


def prints_its_table(name: str) -> None:
    done = run("--quick", name)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: ")
    _, header, *figures = done.stdout.splitlines()
    assert header.split() == ["measured", "goal", "in", "numbers"]
    has_goals = any(" pass " in line or " miss " in line for line in figures)
    assert has_goals is (name not in {"cached", "variants"})


def test_an_unknown_benchmark_is_refused_with_the_names_there_are() -> None:
    done = run("--quick", "warm")

    assert done.returncode == 2
    assert "there is no benchmark 'warm'" in done.stderr
    assert "cold" in done.stderr


@pytest.mark.parametrize(
    ("row", "goal", "verdict"),
    [
        (Row("a", 0.59, "", at_least=0.6), "≥ 0.6 ×", "miss"),
        (Row("a", 0.6, "", at_least=0.6), "≥ 0.6 ×", "pass"),
        (Row("a", 1.31, "", at_most=1.3), "≤ 1.3 ×", "miss"),
        (Row("a", 1.3, "", at_most=1.3), "≤ 1.3 ×", "pass"),
        (Row("a", 61.0, "", at_most=60.0, unit="µs"), "≤ 60 µs", "miss"),
        (Row("a", 5.0, "for comparison"), "", ""),
    ],
)
def test_a_figure_is_held_against_its_goal(row: Row, goal: str, verdict: str) -> None:
    assert (row.goal, row.verdict) == (goal, verdict)


def test_both_tables_hold_the_same_figures() -> None:
    report = Report(
        "cold", "a question", [Row("of the bare loop", 0.614, "3 of 5", at_least=0.6), Row("b", 250.4, "c")]
    )

    for table in (as_text(report), as_markdown([report])):
        for cell in ("of the bare loop", "0.61 ×", "≥ 0.6 ×", "pass", "3 of 5", "250 ×"):
            assert cell in table
