# SPDX-License-Identifier: Apache-2.0
"""Datasets, jobs and secrets at Fireworks, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.deploy.fireworks.datasets import upload_dataset
from reward_kit.deploy.fireworks.evaluator_source import source_of_code
from reward_kit.deploy.fireworks.evaluators import create_evaluator
from reward_kit.deploy.fireworks.jobs import (
    FireworksJob,
    evaluation_body,
    start_evaluation,
    start_training,
    training_body,
)
from reward_kit.deploy.fireworks.rl_backend import FireworksBackend
from reward_kit.deploy.fireworks.secrets import list_secrets, set_secret
from reward_kit.errors import ConfigError, DatasetError, DeployError
from reward_kit.evaluation import evaluate, start_rl_job
from reward_kit.integrations.rl_jobs import JobFailedError
from reward_kit.platform_api import (
    create_or_update_fireworks_secret,
    delete_fireworks_secret,
    get_fireworks_secret,
)
from tests.cli_commands.conftest import Call
from tests.cli_commands.conftest import call as call  # noqa: PLC0414 - a fixture
from tests.deploy.fireworks.fake import ACCOUNT, FakeFireworks

ROWS = [{"messages": [{"role": "user", "content": f"{n} + 1?"}], "ground_truth": str(n + 1)} for n in range(3)]
ONE = "def evaluate(messages, **kwargs):\n    return 1.0\n"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


@pytest.fixture
def stocked(api: FireworksAPI, rows: Path) -> FireworksAPI:
    """An account that has a dataset and an evaluator."""
    upload_dataset(api, "prompts", rows)
    create_evaluator(api, "judge", source_of_code(ONE))
    return api


# ── datasets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dataset_is_sent_whole(api: FireworksAPI, fireworks: FakeFireworks, rows: Path) -> None:
    assert upload_dataset(api, "prompts", rows)["state"] == "READY"
    kept = fireworks.things["datasets/prompts"]
    assert kept.uploads == {"rows.jsonl": rows.read_bytes()} and kept.fields["exampleCount"] == "3"


def test_a_dataset_that_is_there_is_replaced_only_when_told(api: FireworksAPI, rows: Path) -> None:
    upload_dataset(api, "prompts", rows)
    with pytest.raises(DeployError, match="exists"):
        upload_dataset(api, "prompts", rows)
    upload_dataset(api, "prompts", rows, force=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no rows"), ("{}\n", "Line 1"), ('{"messages": []}\nnot json\n', "Line 2"), ("[1]\n", "Line 1")],
)
def test_a_file_that_fireworks_would_refuse_is_not_sent(
    api: FireworksAPI, fireworks: FakeFireworks, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(DatasetError, match=said):
        upload_dataset(api, "bad", file)
    assert fireworks.requests == []


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_training_runs_to_its_end(stocked: FireworksAPI, fireworks: FakeFireworks) -> None:
    settings = {"epochs": 2, "n": 8, "temperature": 1.0, "kl_beta": 0.01, "loss_method": "GRPO", "output_model": "mine"}
    body = training_body(stocked, model="qwen3-8b", dataset="prompts", evaluator="judge", settings=settings)
    job = start_training(stocked, "math-1", body)
    assert job.wait(60) == "succeeded" and "completed" in job.logs()
    asked = fireworks.things["reinforcementFineTuningJobs/math-1"].fields
    assert asked["trainingConfig"] == {
        "baseModel": "accounts/fireworks/models/qwen3-8b",
        "epochs": 2,
        "outputModel": f"accounts/{ACCOUNT}/models/mine",
    }
    assert asked["inferenceParameters"] == {"temperature": 1.0, "responseCandidatesCount": 8}
    assert asked["lossConfig"] == {"method": "GRPO", "klBeta": 0.01}


def test_a_job_is_started_once(stocked: FireworksAPI, fireworks: FakeFireworks) -> None:
    body = training_body(stocked, model="m", dataset="prompts", evaluator="judge", settings={})
    fireworks.lose("POST", "reinforcementFineTuningJobs$", after=True)
    start_training(stocked, "math-1", body)
    with pytest.raises(DeployError, match="none was started"):
        start_training(stocked, "math-1", body)
    assert len([name for name in fireworks.things if "Jobs" in name]) == 1


def test_a_job_that_fails_is_told(stocked: FireworksAPI, fireworks: FakeFireworks) -> None:
    fireworks.job_states = ["JOB_STATE_RUNNING", "JOB_STATE_FAILED"]
    body = training_body(stocked, model="m", dataset="prompts", evaluator="judge", settings={})
    with pytest.raises(JobFailedError, match="out of quota"):
        start_training(stocked, "math-1", body).wait(60)


def test_a_job_that_takes_long_goes_on(stocked: FireworksAPI, fireworks: FakeFireworks) -> None:
    fireworks.job_states = ["JOB_STATE_RUNNING"]
    job = start_training(
        stocked, "j", training_body(stocked, model="m", dataset="prompts", evaluator="judge", settings={})
    )
    with pytest.raises(TimeoutError, match="goes on"):
        job.wait(0.05)
    assert job.status == "running"
    job.cancel()
    assert job.wait(60) == "cancelled"
    job.cancel()


def test_an_evaluation_has_a_log_and_is_deleted_to_stop_it(stocked: FireworksAPI, fireworks: FakeFireworks) -> None:
    fireworks.job_states = ["JOB_STATE_RUNNING"]
    body = evaluation_body(stocked, "check", evaluator="judge", dataset="prompts", output_dataset="verdicts")
    job = start_evaluation(stocked, "check", body)
    assert "Collecting" in job.logs()
    job.cancel()
    assert "evaluationJobs/check" not in fireworks.things


@pytest.mark.parametrize("settings", [{"epoch": 1}, {"loss_method": "PPO"}])
def test_a_setting_that_fireworks_has_not_is_refused_before_anything_is_sent(
    api: FireworksAPI, fireworks: FakeFireworks, settings: dict[str, object]
) -> None:
    with pytest.raises(ConfigError):
        training_body(api, model="m", dataset="d", evaluator="e", settings=settings)
    assert fireworks.requests == []


# ── start_rl_job ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_from_rows_and_a_function_brings_both_there(
    fireworks: FakeFireworks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def correct(messages, answer=None, **kwargs):\n    return 1.0\n")
    rows = [{"prompt": "2 + 2?", "solution": "4"}]
    given = {"columns": {"solution": "answer"}, "output_dir": tmp_path / "out", "backend": "fireworks", "epochs": 1}
    job = start_rl_job("qwen3-8b", rows, "mine.py:correct", **given)  # type: ignore[arg-type]
    assert job.wait(60) == "succeeded"
    (data,) = [thing for name, thing in fireworks.things.items() if name.startswith("datasets/")]
    (sent,) = data.uploads.values()
    assert json.loads(sent) == {"messages": [{"role": "user", "content": "2 + 2?"}], "solution": "4", "answer": "4"}
    before = len(fireworks.things)
    again = start_rl_job("qwen3-8b", rows, "mine.py:correct", **given)  # type: ignore[arg-type]
    assert isinstance(again, FireworksJob) and isinstance(job, FireworksJob)
    assert again.name == job.name and len(fireworks.things) == before


@pytest.mark.parametrize(
    "step",
    [("POST", "/datasets$"), ("POST", "/evaluatorsV2$"), ("POST", "FineTuningJobs$"), ("POST", ":validateUpload$")],
)
@pytest.mark.parametrize("after", [False, True])
def test_a_start_that_broke_off_goes_on_and_starts_one_job(
    fireworks: FakeFireworks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[str, str], after: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def correct(messages, **kwargs):\n    return 1.0\n")
    fireworks.fail(*step, status=403, after=after)

    def start() -> FireworksJob:
        job = start_rl_job(
            "m", [{"prompt": "?"}], "mine.py:correct", output_dir=tmp_path / "out", backend=FireworksBackend()
        )
        assert isinstance(job, FireworksJob)
        return job

    with pytest.raises(Exception, match="told to"):
        start()
    assert start().wait(60) == "succeeded"
    assert len([name for name in fireworks.things if "FineTuningJobs" in name]) == 1


def test_a_method_that_fireworks_has_not_is_refused(fireworks: FakeFireworks, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rloo"):
        start_rl_job("m", "d", "r", output_dir=tmp_path / "out", method="rloo", backend="fireworks")
    assert fireworks.requests == []


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_are_kept_listed_and_removed(api: FireworksAPI, fireworks: FakeFireworks) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN"):
        set_secret(api, name, "first")
    set_secret(api, "OPENAI_API_KEY", "second")
    assert list_secrets(api) == ["HF_TOKEN", "OPENAI_API_KEY"]
    assert fireworks.secrets[f"accounts/{ACCOUNT}/secrets/openai-api-key"]["value"] == "second"


def test_the_inherited_functions_for_secrets(fireworks: FakeFireworks) -> None:
    assert create_or_update_fireworks_secret(ACCOUNT, "my-key", "value-1")
    found = get_fireworks_secret(ACCOUNT, "my-key")
    assert found is not None and found["keyName"] == "MY_KEY" and "value" not in found
    assert delete_fireworks_secret(ACCOUNT, "my-key")
    assert get_fireworks_secret(ACCOUNT, "my-key") is None


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_jobs_are_started_followed_and_cancelled(stocked: FireworksAPI, fireworks: FakeFireworks, call: Call) -> None:
    start = ("jobs", "rl", "start", "--id", "j1", "--model", "m", "--dataset", "prompts", "--evaluator", "judge")
    dry = call(*start, "--epochs", "2", "--dry-run")
    assert dry.code == 0 and json.loads(dry.out)["trainingConfig"]["epochs"] == 2
    assert not any("Jobs" in name for name in fireworks.things)
    assert call(*start).code == 0
    assert "none was started" in call(*start).sentence
    assert "state: " in call("jobs", "rl", "status", "j1").out
    waited = call("jobs", "rl", "wait", "j1")
    assert waited.code == 0 and waited.out.strip() == "succeeded"
    assert "completed" in call("jobs", "rl", "logs", "j1").out


def test_a_dry_run_needs_no_key(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("FIREWORKS_API_KEY", "FIREWORKS_ACCOUNT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    said = call(
        "jobs", "evaluate", "start", "--id", "c", "--evaluator", "e", "--dataset", "d", "--output-dataset", "o",
        "--dry-run",
    )  # fmt: skip
    assert said.code == 0 and json.loads(said.out)["evaluationJob"]["evaluator"] == "accounts/<account>/evaluators/e"


def test_an_evaluation_is_started_and_waited_for(stocked: FireworksAPI, call: Call) -> None:
    said = call(
        "jobs", "evaluate", "start", "--id", "c1", "--evaluator", "judge", "--dataset", "prompts",
        "--output-dataset", "out", "--wait",
    )  # fmt: skip
    assert said.code == 0 and said.out.strip() == "succeeded"


def test_a_job_that_failed_ends_the_command_with_one_sentence(
    stocked: FireworksAPI, fireworks: FakeFireworks, call: Call
) -> None:
    fireworks.job_states = ["JOB_STATE_FAILED"]
    body = training_body(stocked, model="m", dataset="prompts", evaluator="judge", settings={})
    start_training(stocked, "j1", body)
    fireworks.things["reinforcementFineTuningJobs/j1"].fields["status"] = {"message": "out of quota"}
    said = call("jobs", "rl", "wait", "j1")
    assert said.code == 1 and "out of quota" in said.sentence


def test_a_run_becomes_a_dataset_at_fireworks(fireworks: FakeFireworks, call: Call, tmp_path: Path) -> None:
    rows = [
        {"user_query": f"{n}?", "ground_truth_for_eval": str(n), "assistant_response": str(n % 2)} for n in range(3)
    ]
    evaluate(rows, "exact_match", output_dir=tmp_path / "run")
    arguments = ("export", tmp_path / "run", "--to", "fireworks", "-o", "prompts.jsonl", "--upload", "prompts")
    said = call(*arguments)
    assert said.code == 0 and "accounts/acme/datasets/prompts" in said.err
    (sent,) = fireworks.things["datasets/prompts"].uploads.values()
    first = json.loads(sent.splitlines()[0])
    assert first["messages"] == [{"role": "user", "content": "0?"}] and first["ground_truth"] == "0"
    assert "exists" in call(*arguments).sentence
    assert call(*arguments, "--overwrite").code == 0
    assert "--upload" in call("export", tmp_path / "run", "--to", "sft", "-o", "x.jsonl", "--upload", "d").sentence
