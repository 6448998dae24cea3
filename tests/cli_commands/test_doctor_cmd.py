# SPDX-License-Identifier: Apache-2.0
"""`reward-kit doctor`: every check tries the real thing, and says what to do where it fails."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from reward_kit.cli_commands import doctor_cmd, extras
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.ray_engine.probe import Probed
from tests.cli_commands.conftest import Call, write_config
from tests.loopback.runs import config


@pytest.fixture(autouse=True)
def quick_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting Ray takes ten seconds and more; tests/cluster/test_doctor.py has the real one tried."""
    monkeypatch.setattr("reward_kit.execution.ray_engine.probe.probe_ray", lambda: Probed(True, "an actor answered"))


def test_a_working_machine_is_healthy_and_options_are_no_failures(call: Call) -> None:
    said = call("doctor")
    assert said.code == 0
    assert "worker processes" in said.out
    assert "BROKEN" not in said.out
    assert "OPENAI_API_KEY" in said.out


def test_what_is_needed_and_broken_is_exit_code_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise OSError("no processes today")

    monkeypatch.setattr(doctor_cmd, "_a_sum", broken)
    said = call("doctor")
    assert said.code == 1
    assert "BROKEN" in said.out
    assert "Traceback" not in said.err


def test_a_key_is_never_shown(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    said = call("doctor")
    assert "sk-very-secret" not in said.out + said.err


def test_sandboxes_are_tried_and_what_to_install_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    said = call("doctor")
    assert said.code == 0
    assert "apt-get install bubblewrap" in said.out
    assert "unix:///nowhere/docker.sock can be reached" in said.out
    assert "reward-kit sandbox serve" in said.out


def test_every_extra_of_the_package_is_looked_at() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = {
        name: {re.split(r"[<>=~! \[]", requirement)[0] for requirement in requirements}
        for name, requirements in project["optional-dependencies"].items()
        if name != "all"
    }
    assert {name: set(extra.packages) for name, extra in extras.EXTRAS.items()} == declared


def test_json_says_of_each_what_it_is_for_and_what_to_do(call: Call) -> None:
    said = call("doctor", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    checks = {(check["kind"], check["name"]): check for check in found["checks"]}
    assert found["healthy"] is True
    assert {name for kind, name in checks if kind == "extra"} == set(extras.EXTRAS)
    assert {name for kind, name in checks if kind == "tool"} == set(extras.TOOLS)
    assert all(check["works"] or check["advice"] for check in checks.values())
    assert all(check["purpose"] for (kind, _), check in checks.items() if kind in ("extra", "tool"))
    assert re.fullmatch(r"pyarrow \d[\d.]+", checks["extra", "parquet"]["detail"])


def test_a_package_within_a_package_that_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`google.auth` is looked for inside `google`, which nothing of ours brings without the extra."""
    inside = extras.Extra("something rare", {"no-such-thing": "no_such_package.inside"})
    monkeypatch.setattr(extras, "EXTRAS", {"rare": inside})
    (found,) = extras.look_for_extras()
    assert not found.works and found.detail == "not installed: no-such-thing"


def test_a_package_that_is_installed_and_broken_is_told_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("raise ImportError('libnothing.so is gone')\n")
    (tmp_path / "dying_package.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("broken", "dying", "missing"):
        monkeypatch.setitem(extras.EXTRAS, name, extras.Extra("tests", {name: f"{name}_package"}))
    found = {extra.name: extra for extra in extras.look_for_extras()}
    assert "cannot be imported: ImportError: libnothing.so is gone" in found["broken"].detail
    assert "cannot be imported" in found["dying"].detail and "reinstall" in found["dying"].advice
    assert (found["missing"].works, found["missing"].detail) == (False, "not installed: missing")
    assert found["missing"].advice == "pip install 'reward-kit[missing]'"


def test_a_program_that_cannot_say_its_version_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in {"fine": "echo 'fine 1.2'", "faulty": "echo 'no such library' >&2; exit 3"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        monkeypatch.setitem(extras.TOOLS, name, extras.Tool("tests", "Mend it."))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = {tool.name: tool for tool in extras.look_for_tools()}
    assert (found["fine"].works, found["fine"].detail) == (True, "fine 1.2")
    assert (found["faulty"].works, found["faulty"].advice) == (False, "Mend it.")
    assert "ends with 3: no such library" in found["faulty"].detail


# ── of a run directory ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The directory of a finished run of four samples."""
    EvaluationPipeline(config(tmp_path)).run()
    return tmp_path / "run"


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_run_as_it_was_written_is_healthy(call: Call, run: Path) -> None:
    said = call("doctor", run)
    assert said.code == 0
    assert "BROKEN" not in said.out
    assert "4 whole lines" in said.out


@pytest.mark.parametrize("name", ["rollouts.jsonl", "results.jsonl", "summary.json", "config.yaml"])
def test_what_can_be_made_again_is_set_aside_and_made_again(call: Call, run: Path, tmp_path: Path, name: str) -> None:
    before = call("inspect", run, "--format", "json").out
    damage(run / name)
    said = call("doctor", run)
    assert said.code == 1
    assert f"BROKEN  {name}" in said.out
    mended = call("doctor", run, "--mend")
    assert mended.code == 0
    assert f"{name}: set right." in mended.out
    assert call("run", write_config(tmp_path, config(tmp_path))).code == 0
    assert call("doctor", run).code == 0
    assert json.loads(call("inspect", run, "--format", "json").out)["overall"] == json.loads(before)["overall"]


def test_damage_is_told_as_json_too(call: Call, run: Path) -> None:
    assert json.loads(call("doctor", run, "--json").out)["healthy"] is True
    damage(run / "results.jsonl")
    said = call("doctor", run, "--json")
    found = json.loads(said.out)
    assert said.code == 1 and found["healthy"] is False
    assert [file["file"] for file in found["files"] if not file["works"]] == ["results.jsonl"]
    assert json.loads(call("doctor", run, "--mend", "--json").out)["mended"]


def test_a_damaged_manifest_is_said_to_be_and_not_mended(call: Call, run: Path) -> None:
    damage(run / "manifest.json")
    assert call("doctor", run).code == 1
    said = call("doctor", run, "--mend")
    assert said.code == 1
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", ["rollouts.jsonl", "results.jsonl"])
def test_a_file_that_is_gone_is_missed(call: Call, run: Path, name: str) -> None:
    (run / name).unlink()
    said = call("doctor", run)
    assert said.code == 1
    assert "is not there, and had 4 entries" in said.out
    assert call("doctor", run, "--mend").code == 0
    assert call("doctor", run).code == 0


def test_in_a_killed_run_results_tell_of_rollouts_that_are_missing(call: Call, run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_bytes())
    del manifest["holds"], manifest["check"]
    manifest["phases"][-1]["status"] = "running"
    (run / "manifest.json").write_text(json.dumps(manifest))
    lines = (run / "rollouts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "rollouts.jsonl").write_bytes(b"".join(lines[:1]))
    said = call("doctor", run)
    assert said.code == 1
    assert "3 of the 4 entries it had are missing" in said.out
    assert "was cut short" in call("inspect", run).err
    assert "was cut short" in call("export", run, "--to", "kto", "-o", "kto.jsonl").err


@pytest.mark.parametrize("what", ["nowhere", "", "empty", "file.txt"])
def test_what_is_no_run_directory_is_one_sentence(call: Call, tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("x")
    said = call("doctor", what)
    assert said.code == 2
    assert said.sentence
