# SPDX-License-Identifier: Apache-2.0
"""A small project to deploy, a folder of wheels, and a `gcloud` that only pretends about Google."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward_kit.deploy.bundle import BundleSource
from reward_kit.deploy.pinned import pin
from reward_kit.deploy.state import Deployments
from tests.cli_commands.conftest import Call, call  # noqa: F401 - a fixture
from tests.deploy.wheelhouse import make_wheelhouse

__all__ = ["Call", "World"]

FILES = {
    "rewards.py": """
        from reward_kit import reward_function
        from helper import is_same
        from parts import weights

        @reward_function
        def exact(messages, ground_truth=None, bonus: float = 0.0, **kwargs):
            same = is_same(messages[-1].content, ground_truth)
            return min(1.0, weights.WHOLE * same + bonus)
    """,
    "helper.py": "def is_same(one, other): return float(str(one).strip() == str(other).strip())\n",
    "parts/__init__.py": "from . import weights\n",
    "parts/weights.py": "WHOLE = 1.0\n",
    "unrelated.py": "import nothing_like_this\n",
    ".env": "API_KEY=sk-abcdefghijklmnop0123456789\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a reward in several files, which is the current directory."""
    folder = tmp_path / "project"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def source(project: Path) -> BundleSource:
    return BundleSource({"exact": "rewards.py:exact"}, project)


@pytest.fixture
def kept(project: Path) -> Deployments:
    return Deployments()


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of everything that a served reward needs, pip included. Tests that use it belong to one group."""
    pinned = pin(["pip"], extras=["serve"])
    return make_wheelhouse(tmp_path_factory.mktemp("house"), [line.partition("==")[0] for line in pinned.constraints])


# ── gcloud ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class World:
    """What the pretended `gcloud` knows: what exists, what it was asked, and what it shall refuse."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.write({"calls": [], "things": {}, "fail": [], "servers": [], "serves": False})

    def read(self) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(self._file.read_text())
        return known

    def write(self, known: dict[str, Any]) -> None:
        self._file.write_text(json.dumps(known))

    def change(self, **parts: Any) -> None:
        self.write({**self.read(), **parts})

    @property
    def calls(self) -> list[list[str]]:
        """The command lines so far."""
        return [one["argv"] for one in self.read()["calls"]]

    @property
    def things(self) -> dict[str, Any]:
        """What exists: `kind/name` → what is known of it."""
        found: dict[str, Any] = self.read()["things"]
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A `gcloud` first on the PATH, whose Cloud Run is a process of this machine."""
    folder = tmp_path / "google"
    folder.mkdir()
    program = folder / "gcloud"
    fake = Path(__file__).with_name("fake_gcloud.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{fake}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GCLOUD", str(folder / "world.json"))
    made = World(folder / "world.json")
    yield made
    for pid in made.read()["servers"]:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
