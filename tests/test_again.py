# SPDX-License-Identifier: Apache-2.0
"""What CI does with tests that fail: it tries a few again, and tells which passed then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AGAIN = Path(__file__).parents[1] / "scripts" / "again.py"

STEADY = "def test_steady():\n    pass\n"
UNSTEADY = """
import pathlib, pytest
@pytest.mark.parametrize("number, word", [(0, "a [b]::c"), (1, "ü")])
def test_unsteady(number, word):
    mark = pathlib.Path(__file__).with_suffix(f".{number}")
    first = not mark.exists()
    mark.touch()
    assert not first, "the first time"
"""
BROKEN = "def test_broken():\n    assert False, 'always'\n"
SKIPPED_THEN = """
import pathlib, pytest
def test_is_gone():
    mark = pathlib.Path(__file__).with_suffix(".seen")
    if mark.exists():
        pytest.skip("not this time")
    mark.touch()
    assert False
"""


def again(place: Path, *options: str, most: int = 5, **files: str) -> subprocess.CompletedProcess[str]:
    """What becomes of a directory of tests."""
    for name, content in files.items():
        (place / f"test_{name}.py").write_text(content)
    (place / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, str(AGAIN), str(most), "-p", "xdist", "-n", "0", *options, str(place)],
        cwd=place,
        env=os.environ | {"UNSTEADY": str(place / "table"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_fails_once_is_named_and_the_run_is_green(tmp_path: Path) -> None:
    done = again(tmp_path, "-n", "2", "--dist", "loadgroup", steady=STEADY, unsteady=UNSTEADY)
    assert done.returncode == 0, done.stdout + done.stderr
    table = (tmp_path / "table").read_text()
    assert table in done.stdout and "unsteady: failed once, passed alone" in table
    assert table.count("test_unsteady.py::test_unsteady[") == 2 and "test_steady.py" not in table
    assert table.count("AssertionError: the first time") == 2
    assert not (tmp_path / ".pytest_cache").exists()


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    done = again(tmp_path, steady=STEADY, broken=BROKEN)
    assert done.returncode == 1
    assert "Again, alone" in done.stdout and not (tmp_path / "table").exists()


def test_many_failures_are_red_at_once(tmp_path: Path) -> None:
    done = again(tmp_path, most=1, one=BROKEN, another=BROKEN)
    assert done.returncode == 1
    assert "Again, alone" not in done.stdout


def test_what_is_not_run_again_has_not_passed(tmp_path: Path) -> None:
    assert again(tmp_path, gone=SKIPPED_THEN).returncode == 1


def test_what_is_no_failed_test_is_told_as_pytest_tells_it(tmp_path: Path) -> None:
    assert again(tmp_path, steady=STEADY).returncode == 0
    assert again(tmp_path, "--no-such-option").returncode == 4
    assert again(tmp_path, broken="import no_such_module\n").returncode == 2
