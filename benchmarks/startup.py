# SPDX-License-Identifier: Apache-2.0
"""Start-up: importing the package beside importing pydantic, and `--help` beside a minimal click program.

Also a whole run of one mock sample, beside a program that only composes its config.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
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
RUN_GOAL = 1.3
COMPOSING = """
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from reward_kit.config_models import load_config

file = Path(sys.argv[1])
with initialize_config_dir(config_dir=str(file.parent), job_name="baseline", version_base="1.3"):
    load_config(OmegaConf.to_container(compose(config_name=file.name), resolve=True))
"""
"""What no run of `reward-kit run` can do without."""
ASYNCHRONOUS = "async def reward(messages, **kwargs):\n    return 1.0\n"
SYNCHRONOUS = ASYNCHRONOUS.replace("async ", "")
"""The same in a worker process, which has a Python of its own to start."""


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
        runs = _one_sample(shop.directory, rounds)
    found = [
        _row("import reward_kit, of import pydantic", times["reward_kit"], times["pydantic"], GOAL),
        _row("reward-kit --help, of a minimal click program", times["reward-kit"], times["click"], GOAL),
        _row("import reward_kit, of an empty program", times["reward_kit"], times["bare"], None),
        _row("reward-kit run, one mock sample, CPU of composing", runs["run"], runs["composing"], RUN_GOAL),
        _row("the same with a worker process", runs["run with a worker"], runs["composing"], None),
    ]
    return Report("startup", f"whole processes, best of {rounds}", found)


def _one_sample(home: Path, rounds: int) -> dict[str, Timed]:
    """Processor time of a whole run of one sample, its children's included, and of composing the same config."""
    (home / "composing.py").write_text(COMPOSING)
    commands = {"composing": [sys.executable, str(home / "composing.py"), str(_config(home, "run", ASYNCHRONOUS))]}
    for name, reward in (("run", ASYNCHRONOUS), ("run with a worker", SYNCHRONOUS)):
        commands[name] = [*_console_script(), "run", str(_config(home, name.replace(" ", "_"), reward))]
    for command in commands.values():
        _processor_seconds(command, home)()
    return interleaved({name: _processor_seconds(command, home) for name, command in commands.items()}, rounds)


def _config(home: Path, name: str, reward: str) -> Path:
    (home / f"{name}_reward.py").write_text(reward)
    (home / f"{name}.jsonl").write_text('{"user_query": "2 + 2?", "ground_truth_for_eval": "4"}\n')
    config = {
        "dataset": {"path_or_name": str(home / f"{name}.jsonl")},
        "generation": {"model_name": "mock", "cache": {"enabled": False}},
        "reward": {"function_path": f"{home / name}_reward.py:reward"},
        "output": {"output_dir": str(home / _OUTPUT)},
    }
    file = home / f"{name}.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    return file


def _processor_seconds(command: list[str], home: Path) -> Callable[[], float]:
    def measure() -> float:
        shutil.rmtree(home / _OUTPUT, ignore_errors=True)  # else there is nothing to do
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, cwd=home, env=_environment())  # no repository: no git
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return measure


_OUTPUT = "one_sample"


def _row(what: str, ours: Timed, theirs: Timed, goal: float | None) -> Row:
    context = (
        f"{ours.best * 1000:.0f} ms of {theirs.best * 1000:.0f} ms; by medians {ours.median / theirs.median:.2f} ×"
    )
    return Row(what, ours.best / theirs.best, context, at_most=goal)


def _environment() -> dict[str, str]:
    """This one, with modules that stay compiled, as they do for whoever has installed the package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _console_script() -> list[str]:
    installed = Path(sys.executable).parent / "reward-kit"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "reward_kit"]


def _seconds(command: list[str]) -> Callable[[], float]:
    def measure() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=_environment())
        return time.perf_counter() - start

    return measure
