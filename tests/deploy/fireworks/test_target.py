# SPDX-License-Identifier: Apache-2.0
"""`deploy --target fireworks` and `secrets --store fireworks`, against the fake service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_commands.conftest import Call
from tests.cli_commands.conftest import call as call  # noqa: PLC0414 - a fixture
from tests.deploy.fireworks.fake import ACCOUNT, KEY, FakeFireworks, unpacked

DEPLOY = ("deploy", "--target", "fireworks", "--id", "mine")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "whole_texts.py").write_text("def whole(text):\n    return text.strip()\n")
    (tmp_path / "mine.py").write_text(
        "from whole_texts import whole\n\ndef reward(messages, ground_truth=None, **kwargs):\n"
        "    return float(whole(messages[-1]['content']) == ground_truth)\n"
    )
    return tmp_path


def test_a_reward_is_deployed_looked_at_and_deleted(fireworks: FakeFireworks, call: Call, project: Path) -> None:
    said = call(*DEPLOY, "--function-ref", "mine.py:reward")
    assert said.code == 0, said.err
    assert f"accounts/{ACCOUNT}/evaluators/mine" in said.out
    evaluator = fireworks.things["evaluators/mine"]
    assert evaluator.fields["state"] == "ACTIVE"
    sent = unpacked(next(iter(evaluator.uploads.values())))
    assert {"main.py", "requirements.txt", "project/mine.py", "project/whole_texts.py"} <= set(sent)
    assert "ACTIVE" in call("deploy", "status", "mine").out
    assert "Collecting" in call("deploy", "logs", "mine").out
    assert call("deploy", "delete", "mine").code == 0
    assert fireworks.things == {}


def test_a_dry_run_says_everything_and_sends_nothing(fireworks: FakeFireworks, call: Call, project: Path) -> None:
    said = call(*DEPLOY, "--function-ref", "mine.py:reward", "--dry-run")
    assert said.code == 0
    for word in ("project/whole_texts.py", "fireworks.create", "fireworks.upload", "main.py::evaluate"):
        assert word in said.out
    assert KEY not in said.out + said.err
    assert fireworks.requests == [] and not (project / ".reward_kit").exists()


@pytest.mark.parametrize("step", ["/evaluatorsV2$", ":getUploadEndpoint$", ":validateUpload$"])
@pytest.mark.parametrize("after", [False, True])
def test_what_broke_off_goes_on_with_the_same_command(
    fireworks: FakeFireworks, call: Call, project: Path, step: str, after: bool
) -> None:
    fireworks.fail("POST", step, 403, after=after)
    first = call(*DEPLOY, "--function-ref", "mine.py:reward")
    assert first.code == 1 and "told to" in first.sentence and "Run the same command again" in first.sentence
    assert call(*DEPLOY, "--function-ref", "mine.py:reward").code == 0
    assert fireworks.things["evaluators/mine"].fields["state"] == "ACTIVE"


def test_what_somebody_else_made_is_taken_over_only_with_force(
    fireworks: FakeFireworks, call: Call, project: Path
) -> None:
    assert call(*DEPLOY, "--function-ref", "mine.py:reward").code == 0
    (project / ".reward_kit" / "deployments" / "mine.json").unlink()
    assert "--force" in call(*DEPLOY, "--function-ref", "mine.py:reward").sentence
    assert call(*DEPLOY, "--function-ref", "mine.py:reward", "--force").code == 0


def test_metrics_and_addresses_are_deployed_too(fireworks: FakeFireworks, call: Call, project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "main.py").write_text("def evaluate(messages, **kwargs):\n    return 1.0\n")
    assert call(*DEPLOY, "-m", "a=one", "-m", "b=two").code == 0
    assert [one["name"] for one in fireworks.things["evaluators/mine"].fields["criteria"]] == ["a", "b"]
    far = ("deploy", "--target", "fireworks", "--id", "far", "--remote-url", "https://rewards.example.com")
    said = call(*far)
    assert said.code == 0, said.err
    sent = unpacked(next(iter(fireworks.things["evaluators/far"].uploads.values())))
    assert b"https://rewards.example.com/evaluate" in sent["main.py"]


def test_a_secret_goes_in_by_standard_input_and_is_listed_by_name(fireworks: FakeFireworks, tmp_path: Path) -> None:
    def secrets(*words: str, value: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "reward_kit", "secrets", *words, "--store", "fireworks"],
            input=value, capture_output=True, text=True, timeout=100, check=True,
        )  # fmt: skip
        return done.stdout + done.stderr

    said = secrets("set", "OPENAI_API_KEY", value="a-value-that-is-secret-77\n")
    assert "secret-77" not in said
    assert fireworks.secrets[f"accounts/{ACCOUNT}/secrets/openai-api-key"]["value"] == "a-value-that-is-secret-77"
    assert "OPENAI_API_KEY" in secrets("list")
    secrets("delete", "OPENAI_API_KEY")
    assert fireworks.secrets == {}
