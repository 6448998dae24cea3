# SPDX-License-Identifier: Apache-2.0
"""The ten tasks of docs/tasks.md, done by following the page that answers each, from a fresh environment.

The environment is made for this test: an empty one, into which the wheel of this checkout is installed without its
dependencies. Those are lent by the environment of the tests, through a path file: so nothing is fetched and it takes a
second, and `reward-kit` and `python` still are the installed ones, which know nothing of the checkout. What happens
where a dependency or an extra is missing is for `make smoke`, which installs everything anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doc_pages import PROGRAMS, ROOT, Reader, tasks
from tests.execution.shell_support import require_namespaces
from tests.generation.loopback import Loopback, Says, answer
from tests.loopback.endpoint import serving

TASKS = tasks()


def solve(body: dict[str, Any], _: int) -> Says:
    """An endpoint that always says seven."""
    return answer(*[r"\boxed{7}"] * body.get("n", 1))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a fresh environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("fresh")
    environment = {**os.environ, "REWARD_KIT_WITHOUT_PAGE": "1"}
    for command in (
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        [str(PROGRAMS / "uv"), "venv", "--quiet", "--python", sys.executable, str(folder / "env")],
    ):
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    wheel = next(folder.glob("*.whl"))
    uv = [str(PROGRAMS / "uv"), "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install = [*uv, "--python", str(folder / "env"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    home = next((folder / "env" / "lib").glob("python*/site-packages"))
    (home / "lent.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n", encoding="utf-8")
    return folder / "env" / "bin"


@pytest.fixture
def endpoint() -> Iterator[Loopback]:
    with serving(solve) as started:
        yield started


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def rows(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def score(reader: Reader, run: str) -> float:
    scores = [row["evaluation_score"] for row in results(reader.directory / "outputs" / run)]
    return float(sum(scores) / len(scores))


Check = Callable[[Reader, Loopback], bool]
CHECKS: dict[str, Check] = {
    "score a CSV": lambda reader, _: score(reader, "answers") == 0.5,
    "raise n to 16": lambda _, endpoint: sum(body.get("n", 1) for body in endpoint.requests) == 3 * 16,
    "find out whether model B": lambda reader, _: "is better than" in reader.heard("reward-kit inspect").text,
    "know why an answer failed": lambda reader, _: "It is 21." in reader.heard("reward-kit inspect").text,
    "know the price": lambda reader, _: (
        "16" in reader.heard("reward-kit run run.yaml --dry-run").text and not (reader.directory / "outputs").exists()
    ),
    "train a model": lambda reader, _: (
        0 < rows(reader.directory / "prompts.jsonl") <= 20 and 0.3 < score(reader, "sums") < 0.7
    ),
    "make training data": lambda reader, _: rows(reader.directory / "kto.jsonl") == 6,
    "judge programs": lambda reader, _: 0 < score(reader, "code") < 1,
    "know whether your reward": lambda reader, _: (
        "passed: []" in reader.heard("python disagreements.py").text
        and "1 passed" in reader.heard("python -m pytest").text
    ),
    "let a model act": lambda reader, _: (
        "pear" in reader.heard("reward-kit trajectory").text and round(score(reader, "shop"), 2) == 0.35
    ),
}
"""What each task promised, by the words it begins with."""


def test_there_are_ten_tasks_and_each_is_checked() -> None:
    assert len(TASKS) == 10
    assert all(task.startswith(begin) for task, begin in zip(TASKS, CHECKS, strict=True))


@pytest.mark.xdist_group("fresh environment")
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_done_by_following_its_page(task: str, programs: Path, endpoint: Loopback, tmp_path: Path) -> None:
    page, heading = TASKS[task]
    if task.startswith("judge programs"):
        require_namespaces()
    reader = Reader(page, tmp_path, endpoint.api_base, programs=programs)
    used = reader.type("python -c 'import reward_kit; print(reward_kit.__file__)'").out
    assert str(programs.parent) in used, "the installed package, not the checkout"
    reader.follow(heading)
    kept = next(check for begin, check in CHECKS.items() if task.startswith(begin))
    assert kept(reader, endpoint)
