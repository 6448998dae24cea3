# SPDX-License-Identifier: Apache-2.0
"""What holds for root holds for an ordinary user: the part of the suites that an ordinary user has other means for.

Root runs them as somebody else; an ordinary user who runs the tests has run them already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER = 54_321
"""A number that nobody has."""
FILES = [
    f"tests/sandbox/{name}.py"
    for name in (
        "test_contract",
        "test_hostile",
        "namespaces/test_backend",
        "namespaces/test_disk",
        "namespaces/test_snapshots",
        "python/test_hostile",
    )
]
CHOSEN = (
    "namespaces and (standalone_command_past or too_much_memory) or network_is_there or fork_bomb or counted or bomb "
    "or watched or undumpable or first_thread or is_a_root or forbidding or runs_once or memory_of_all or together"
)
"""Time, memory, processes, disk, network, images, removal and snapshots: each is bounded or done by another means."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the user may write to."""
    directory = Path(tempfile.mkdtemp(prefix="reward-kit-user-"))
    os.chown(directory, USER, USER)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.slow
@pytest.mark.timeout(900)  # it is a whole suite, and the machine may be busy
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_is_as_well_served(place: Path) -> None:
    pytest_as_user = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHOSEN]
    become = [sys.executable, str(Path(__file__).with_name("as_ordinary_user.py")), str(USER), str(ROOT)]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "CI") if name in os.environ}
    done = subprocess.run(
        [*become, *pytest_as_user, "--basetemp", str(place / "tests"), *FILES],
        cwd=ROOT,
        env={**kept, "HOME": str(place), "TMPDIR": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "namespaces does not work here" in done.stdout or "Operation not permitted" in done.stderr:
        pytest.skip(f"an ordinary user cannot have sandboxes here: {done.stdout[-500:]}{done.stderr[-500:]}")
    assert done.returncode == 0, done.stdout + done.stderr
