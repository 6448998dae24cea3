# SPDX-License-Identifier: Apache-2.0
"""Training jobs on this machine, with a program in `trl`'s place; tests/training starts a real one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.evaluation import start_rl_job
from reward_kit.integrations.rl_jobs import JobFailedError, JobRequest, LocalBackend, LocalJob

REWARD = "tests.integrations.trainer_rewards:exact"
ROWS = [{"prompt": "2 + 2?", "answer": "4"}]

TRAINER = '''
"""Does what `--mode` says, as far as a trainer would: it imports the reward and asks it."""
import importlib, os, sys, time
sys.path.insert(0, os.getcwd())
told = dict(zip(sys.argv[2::2], sys.argv[3::2]))
print(sys.argv[1], told["--dataset_name"], flush=True)
module, name = told["--reward_funcs"].rsplit(".", 1)
reward = getattr(importlib.import_module(module), name)
print("scores", reward(prompts=["2 + 2?"], completions=["4"], answer=["4"]), flush=True)
if told["--mode"] == "sleep":
    time.sleep(600)
sys.exit(3 if told["--mode"] == "fail" else 0)
'''


@pytest.fixture
def backend(tmp_path: Path) -> LocalBackend:
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    return LocalBackend([sys.executable, str(program)])


def start(backend: LocalBackend, directory: Path, mode: str, **options: Any) -> LocalJob:
    given: dict[str, Any] = {"dataset": ROWS, "columns": {"answer": "ground_truth"}, **options}
    job = start_rl_job("m", reward=REWARD, output_dir=directory, backend=backend, mode=mode, **given)
    assert isinstance(job, LocalJob)
    return job


def test_a_job_runs_to_its_end(backend: LocalBackend, tmp_path: Path) -> None:
    job = start(backend, tmp_path / "job", "work", params={"bonus": 0.5}, reward_weights=[1.0, 2.0])
    assert job.wait(timeout=60) == job.status == "succeeded"
    assert "scores [1.5]" in job.logs()
    assert list(job.follow()) == job.logs().splitlines()
    command = json.loads((tmp_path / "job" / "job.json").read_text())["command"]
    assert command[command.index("--reward_weights") :][:3] == ["--reward_weights", "1.0", "2.0"]
    assert [json.loads(line) for line in (tmp_path / "job" / "data" / "train.jsonl").read_text().splitlines()] == ROWS
    job.cancel()
    assert job.status == "succeeded"


def test_a_job_that_fails_says_why(backend: LocalBackend, tmp_path: Path) -> None:
    job = start(backend, tmp_path / "job", "fail")
    with pytest.raises(JobFailedError, match=r"(?s)exit code 3.*scores \[1\.0\]"):
        job.wait(timeout=60)
    assert job.status == "failed"


def test_a_job_can_be_cancelled_also_by_who_did_not_start_it(backend: LocalBackend, tmp_path: Path) -> None:
    job = start(backend, tmp_path / "job", "sleep")
    while "scores" not in job.logs():
        assert job.status == "running", job.logs()
        time.sleep(0.05)
    with pytest.raises(TimeoutError, match="still running"):
        job.wait(timeout=0.1)
    code = f"from reward_kit.integrations.rl_jobs import LocalJob; LocalJob({str(tmp_path / 'job')!r}).cancel()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert job.wait(timeout=60) == "cancelled"


def test_a_file_is_a_dataset(backend: LocalBackend, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    job = start(backend, tmp_path / "job", "work", dataset=tmp_path / "rows.jsonl")
    job.wait(timeout=60)
    assert (tmp_path / "job" / "data" / "rows.jsonl").exists()
    assert f"grpo {tmp_path.resolve() / 'job' / 'data'}" in job.logs()


def test_what_cannot_start_is_refused(backend: LocalBackend, tmp_path: Path) -> None:
    start(backend, tmp_path / "job", "work").wait(timeout=60)
    with pytest.raises(ConfigError, match="a job in"):
        start(backend, tmp_path / "job", "work")
    with pytest.raises(ConfigError, match="'prompt'"):
        start(backend, tmp_path / "rows", "work", dataset=[{"question": "prompt"}])
    with pytest.raises(ImportError, match="no_such"):
        start_rl_job("m", ROWS, "no_such:thing", output_dir=tmp_path / "none", backend=backend)
    with pytest.raises(ConfigError, match="no job"):
        LocalJob(tmp_path / "nothing")


class Elsewhere:
    """Another backend."""

    def start(self, request: JobRequest) -> Any:
        return request


def test_a_backend_is_named_by_its_import_path() -> None:
    started: Any = start_rl_job("m", ROWS, REWARD, output_dir="o", backend=f"{__name__}:Elsewhere", max_steps=3)
    assert (started.model, started.settings, started.method) == ("m", {"max_steps": 3}, "grpo")
