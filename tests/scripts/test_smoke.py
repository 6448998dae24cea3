# SPDX-License-Identifier: Apache-2.0
"""`make smoke`: what fails is named and fails the whole; the versions are the pinned ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from scripts import smoke


def place(tmp_path: Path, name: str = "base") -> smoke.Place:
    return smoke.Place(name, tmp_path, tmp_path / "x.whl", tmp_path / "constraints.txt")


def test_a_command_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert here.try_it("fine", lambda: here.type("echo yes"))
    assert not here.try_it("broken", lambda: here.type("echo why >&2; exit 3"))
    assert "exit code 3: why" in here.trials[1].fault
    lines = smoke.table([here, place(tmp_path, "serve")]).splitlines()
    assert lines[1].split()[:2] == ["base", "1/2"] and "FAILED: broken" in lines[1] and lines[2].split()[0] == "serve"


def test_an_expected_exit_code_is_no_fault_and_another_is(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert here.try_it("refused", lambda: here.type("exit 2", exit_code=2))
    assert not here.try_it("not refused", lambda: here.type("true", exit_code=2))


def test_what_the_checkout_has_is_not_seen_by_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/checkout")
    here = place(tmp_path)
    assert here.type("echo ${PYTHONPATH:-none}") == "none"
    assert here.type("echo $PATH").startswith(str(tmp_path / "env" / "bin"))


def test_pins_become_constraints_without_hashes() -> None:
    hashed = "# made by\naiohttp==3.13.4 \\\n    --hash=sha256:ab\nuvloop==0.21.0 ; sys_platform != 'win32' \\\n"
    assert smoke.pins(hashed) == "aiohttp==3.13.4\nuvloop==0.21.0 ; sys_platform != 'win32'\n"


def test_what_is_tried_names_extras_that_there_are() -> None:
    project = tomllib.loads((smoke.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*smoke.OWN, *smoke.SERVED} <= {"base", *project["optional-dependencies"]}


def test_a_server_that_says_no_address_is_a_fault_that_says_what_it_said(tmp_path: Path) -> None:
    here = place(tmp_path)
    (tmp_path / "starter").mkdir()
    assert not here.try_it("server", lambda: smoke._serve(here, "echo no module", "/"))
    assert "no address was printed: no module" in here.trials[0].fault
