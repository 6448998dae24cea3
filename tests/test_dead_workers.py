# SPDX-License-Identifier: Apache-2.0
"""A test process that dies fails the test it ran; all others are run, once, and the whole run ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAD = """
import os, pathlib, signal, time, pytest
def begin(name):
    with open(pathlib.Path(__file__).with_name("begun"), "a") as file:
        file.write(f"{name}\\n")
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""
NUMBERED = """
@pytest.mark.parametrize("number", range(12))
def test_numbered(number):
    begin(number)
    number in {deadly} and die()
"""
GROUPED = """
@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(6))
def test_grouped(number):
    begin(number)
    number in {deadly} and die()
"""
FORKED = """
@pytest.mark.parametrize("number", range(4))
def test_forked(number):
    begin(number)
    if number == 1:
        reading, writing = os.pipe()
        if not os.fork():
            os.write(writing, b"child")
            with open(pathlib.Path(__file__).with_name("fifo")) as fifo:
                fifo.read()
            os._exit(0)
        os.read(reading, 5)
        die()
"""
LATE = """
@pytest.fixture(scope="session", autouse=True)
def late():
    yield
    os.environ["PYTEST_XDIST_WORKER"] == "gw0" and die()
@pytest.mark.parametrize("number", range(4))
def test_before(number):
    begin(number)
"""


def finished(place: Path, tests: str, *command: str) -> subprocess.CompletedProcess[str]:
    """A run of these tests by two processes."""
    (place / "test_it.py").write_text(HEAD + tests)
    (place / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "xdist", "-p", "tests.dead_workers", "-n", "2", "--dist", "loadgroup", str(place)]
    with open(place / "told", "w+") as told:  # a file has no end to wait for, as a pipe has that a child keeps open
        done = subprocess.run(
            [sys.executable, *(command or ("-m", "pytest")), *options],
            cwd=place,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "UNSTEADY": ""},
            stdout=told,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=100,
        )
        told.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, told.read())


def begun(place: Path) -> Counter[int]:
    return Counter(int(line) for line in (place / "begun").read_text().split())


@pytest.mark.parametrize("deadly", [{0}, {11}, {10, 11}, {0, 1, 2}, {3, 7, 8}], ids=str)
def test_a_death_costs_one_test(tmp_path: Path, deadly: set[int]) -> None:
    done = finished(tmp_path, NUMBERED.format(deadly=deadly))
    assert done.returncode == 1
    assert f"{len(deadly)} failed, {12 - len(deadly)} passed" in done.stdout, done.stdout
    assert all(f"crashed while running 'test_it.py::test_numbered[{number}]'" in done.stdout for number in deadly)
    assert begun(tmp_path) == Counter(range(12))


def test_the_others_of_a_group_are_run_all_the_same(tmp_path: Path) -> None:
    done = finished(tmp_path, GROUPED.format(deadly={1, 4}))
    assert "2 failed, 4 passed" in done.stdout, done.stdout
    assert "crashed while running 'test_it.py::test_grouped[4]'" in done.stdout
    assert begun(tmp_path) == Counter(range(6))


def test_a_child_that_was_forked_does_not_hide_a_death(tmp_path: Path) -> None:
    """The child waits until this test has seen the run end."""
    os.mkfifo(tmp_path / "fifo")
    try:
        done = finished(tmp_path, FORKED)
    finally:
        os.close(os.open(tmp_path / "fifo", os.O_WRONLY | os.O_NONBLOCK))
    assert "1 failed, 3 passed" in done.stdout, done.stdout


def test_a_death_after_the_last_test_fails_the_run(tmp_path: Path) -> None:
    done = finished(tmp_path, LATE)
    assert done.returncode == 1, done.stdout
    assert "4 passed" in done.stdout


def test_a_test_that_died_and_passes_alone_is_named(tmp_path: Path) -> None:
    once = NUMBERED.format(deadly="({3} if not os.path.exists('once') else ())").replace(
        "and die()", "and [pathlib.Path('once').touch(), die()]"
    )
    done = finished(tmp_path, once, str(ROOT / "scripts" / "again.py"), "5")
    assert done.returncode == 0, done.stdout
    assert "unsteady: failed once, passed alone" in done.stdout
    assert begun(tmp_path) == Counter(range(12)) + Counter([3])
