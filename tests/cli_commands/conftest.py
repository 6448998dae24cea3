# SPDX-License-Identifier: Apache-2.0
"""Calling the command line, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from reward_kit.cli import main


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence of an error; anything more fails."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        complaints = [line for line in lines if line.startswith("Error: ")]
        assert len(complaints) == 1, self.err
        assert lines[-1] == complaints[0], self.err
        assert "Traceback" not in self.err
        return complaints[0]


Call = Callable[..., Said]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Call `reward-kit` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def call_it(*arguments: str | Path) -> Said:
        given = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["reward-kit", *given])
        capfd.readouterr()
        with pytest.raises(SystemExit) as leave:
            main(given)
        code = leave.value.code
        captured = capfd.readouterr()
        return Said(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)

    return call_it


def write_config(home: Path, told: Mapping[str, Any], name: str = "run.yaml") -> Path:
    path = home / name
    path.write_text(yaml.safe_dump(dict(told)))
    return path


LITTLE_ROOM = """
import resource, sys
room = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
from reward_kit.cli import main
main()
"""


def start(home: Path, *arguments: str | Path, room: int | None = None) -> subprocess.Popen[str]:
    """Start `reward-kit` as a person does; with `room`, where no file can grow beyond so many bytes."""
    program = ["-m", "reward_kit"] if room is None else ["-c", LITTLE_ROOM, str(room)]
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)], cwd=home, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "400"},
    )  # fmt: skip
