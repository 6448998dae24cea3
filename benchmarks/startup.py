"""Start-up: importing the package beside importing pydantic, and `--help` beside a minimal click program's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Report, Row
from benchmarks.scene import ROOT, Timed, interleaved, workshop

__all__ = ["main"]

GOAL = 1.5
ROUNDS = 20
MINIMAL_PROGRAM = """
import click


@click.command()
@click.option("--name", default="world", help="Whom to greet.")
def hello(name):
    \"\"\"Greet somebody.\"\"\"
    click.echo(f"Hello {name}")


hello()
"""


def main(*, quick: bool = False) -> Report:
    """Time whole processes, from their start to their end."""
    rounds = 2 if quick else ROUNDS
    with workshop() as shop:
        minimal = shop.directory / "minimal.py"
        minimal.write_text(MINIMAL_PROGRAM)
        commands = {
            "bare": [sys.executable, "-c", ""],
            "pydantic": [sys.executable, "-c", "import pydantic"],
            "reward_kit": [sys.executable, "-c", "import reward_kit"],
            "click": [sys.executable, str(minimal), "--help"],
            "reward-kit": [*_console_script(), "--help"],
        }
        for command in commands.values():  # once beforehand, so that everything is compiled
            _seconds(command)()
        times = interleaved({name: _seconds(command) for name, command in commands.items()}, rounds)
    found = [
        _row("import reward_kit, of import pydantic", times["reward_kit"], times["pydantic"], GOAL),
        _row("reward-kit --help, of a minimal click program", times["reward-kit"], times["click"], GOAL),
        _row("import reward_kit, of an empty program", times["reward_kit"], times["bare"], None),
    ]
    return Report("startup", f"whole processes, best of {rounds}", found)


def _row(what: str, ours: Timed, theirs: Timed, goal: float | None) -> Row:
    context = (
        f"{ours.best * 1000:.0f} ms of {theirs.best * 1000:.0f} ms; by medians {ours.median / theirs.median:.2f} ×"
    )
    return Row(what, ours.best / theirs.best, context, at_most=goal)


def _console_script() -> list[str]:
    installed = Path(sys.executable).parent / "reward-kit"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "reward_kit"]


def _seconds(command: list[str]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        return time.perf_counter() - start

    return measure
