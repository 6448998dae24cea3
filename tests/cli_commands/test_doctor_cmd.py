"""`reward-kit doctor`: every check tries the real thing, and says what to do where it fails."""

from __future__ import annotations

import pytest

from reward_kit.cli_commands import doctor_cmd
from tests.cli_commands.conftest import Call


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
