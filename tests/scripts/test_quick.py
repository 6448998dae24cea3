# SPDX-License-Identifier: Apache-2.0
"""Which tests a change concerns, in a small repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

QUICK = Path(__file__).parents[2] / "scripts" / "quick.py"
FILES = {
    "reward_kit/room/part.py": "X = 1\n",
    "reward_kit/room/user.py": "from reward_kit.room.part import X\n",
    "reward_kit/other.py": "Y = 1\n",
    "tests/room/test_part.py": "def test_mirrors(): pass\n",
    "tests/test_imports.py": "from reward_kit.room import part\ndef test_it(): pass\n",
    "tests/test_a_lot.py": "import ast, json, os\nfrom reward_kit.room import user\ndef test_it(): pass\n",
    "tests/test_through.py": "import reward_kit.room.user\ndef test_it(): pass\n",
    "tests/test_other.py": "def test_it(): pass\ndef unused():\n    import reward_kit.other\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-q", "-m", "begin")
    _git(tmp_path, "checkout", "-q", "-b", "change")
    return tmp_path


def _git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=place, check=True)


def quick(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, QUICK, *options], cwd=place, capture_output=True, text=True, check=False)


def test_nearest_first_and_what_is_not_concerned_not_at_all(repository: Path) -> None:
    (repository / "reward_kit/room/part.py").write_text("X = 2\n")
    _git(repository, "commit", "-q", "-a", "-m", "change")
    (repository / "tests/test_new.py").write_text("def test_new(): pass\n")
    listed = quick(repository, "--list").stdout.split()
    nearest = ["tests/room/test_part.py", "tests/test_new.py", "tests/test_imports.py"]
    assert listed == [*nearest, "tests/test_through.py", "tests/test_a_lot.py"]


def test_it_runs_them_and_fails_with_them(repository: Path) -> None:
    assert "concerns no test" in quick(repository, "--since", "HEAD").stdout
    (repository / "reward_kit/other.py").write_text("Y = 2\n")
    done = quick(repository, "--workers", "0")
    assert done.returncode == 0 and "all 1 files" in done.stdout, done.stdout + done.stderr
    (repository / "tests/test_other.py").write_text("def test_it(): assert False\n")
    assert quick(repository, "--workers", "0").returncode == 1
