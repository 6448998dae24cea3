# SPDX-License-Identifier: Apache-2.0
"""What a supervisor is made of: every porter is a fork of it, and pays for whatever it has imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reward_kit

HEAVY = {"asyncio", "dataclasses", "inspect", "logging", "pathlib", "pydantic", "subprocess", "tempfile", "typing"}
ROOT = Path(reward_kit.__file__).parents[1]


def modules_of(program: str) -> set[str]:
    """What a process has imported that is started as this program of the package."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import reward_kit.sandbox.{program}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("program", ["namespaces.supervisor", "local.porter"])
def test_it_is_small(program: str) -> None:
    assert modules_of(program) & HEAVY == set()


@pytest.mark.parametrize("program", ["namespaces.supervisor", "local.porter", "python.supervisor"])
def test_it_needs_nothing_that_is_installed(program: str) -> None:
    rooms = {name.split(".")[0] for name in modules_of(program)} - {"__main__"}
    assert {name for name in rooms if name not in sys.stdlib_module_names} == {"reward_kit"}


def test_a_porter_without_isolation_makes_no_system_calls_of_its_own() -> None:
    assert "ctypes" not in modules_of("local.porter"), "the backend `none` is for machines without Linux, too"
