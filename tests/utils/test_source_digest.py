# SPDX-License-Identifier: Apache-2.0
"""Digests of the source that defines an object."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reward_kit.utils.module_loader import load_object, source_digest

SOURCE = """
import functools

def decorate(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@decorate
def decorated(x): return x
def plain(x): return x + 1
def at_least(bound):
    def reward(x): return x >= bound
    return reward
class Judge:
    def __call__(self, x): return x
    def score(self, x): return x
loose, strict = at_least(0.5), at_least(0.9)
up, down = (lambda x: x + 1), (lambda x: x - 1)
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Any]:
    (tmp_path / "mine.py").write_text(SOURCE)
    return lambda name: load_object(f"{tmp_path}/mine.py:{name}")


def test_everything_in_a_file_has_a_digest_of_its_own(load: Callable[[str], Any]) -> None:
    names = ["decorated", "plain", "Judge", "Judge.score", "loose", "strict", "up", "down"]
    assert len({source_digest(load(name)) for name in names}) == len(names)


def test_an_instance_is_its_class_and_a_bound_method_its_function(load: Callable[[str], Any]) -> None:
    judge = load("Judge")
    assert source_digest(judge()) == source_digest(judge)
    assert source_digest(judge().score) == source_digest(judge.score)


def test_a_partial_depends_on_its_arguments(load: Callable[[str], Any]) -> None:
    one, two = (source_digest(functools.partial(load("plain"), x=x)) for x in (1, 2))
    assert one != two


def test_an_edit_anywhere_in_the_file_changes_it(load: Callable[[str], Any], tmp_path: Path) -> None:
    before = source_digest(load("decorated"))
    (tmp_path / "mine.py").write_text(SOURCE + "# a remark\n")
    assert source_digest(load("decorated")) != before


def test_code_without_a_file_is_told_apart_by_what_it_does() -> None:
    def made(source: str) -> Any:
        return eval(source)

    assert source_digest(made("lambda x: x in {'a', 'b'}")) == source_digest(made("lambda x: x in {'b', 'a'}"))
    assert source_digest(made("lambda x: x + 1")) != source_digest(made("lambda x: x + 2"))
    assert source_digest(made("lambda x=1: x")) != source_digest(made("lambda x=2: x"))
    assert source_digest(len) != source_digest(abs)


def test_the_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    code = (
        "from reward_kit.utils.module_loader import load_object, source_digest\n"
        f"f = eval(\"lambda x, y={{'p': 1}}: x in {{'a', 'b', 'c'}}\")\n"
        f"print(source_digest(f), source_digest(load_object({str(tmp_path / 'mine.py')!r} + ':loose')))\n"
    )
    root = str(Path(__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": root, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
