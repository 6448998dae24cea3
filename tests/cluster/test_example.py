# SPDX-License-Identifier: Apache-2.0
"""A Ray of the run's own: started quietly, ended with the run, however that ends. And inside a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson

from tests.cluster.nodes import Nodes
from tests.loopback.runs import config, lines, questions, results

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    """A command in a process group of its own, as a shell starts it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [sys.executable, "-m", "reward_kit.cli", *arguments], cwd=home, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**clean, "HOME": str(home), **environment},
    )  # fmt: skip


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family = {pid}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    return family - {pid}


def none_left(pids: set[int]) -> bool:
    """Whether all processes are gone soon."""
    for _ in range(600):
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def _runs(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_example_runs_with_a_ray_of_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    example = ("run", "--config-path", "examples/ray_cluster/conf", "--config-name", "offline")
    running = command(*example, home=tmp_path)
    told, complaints = running.communicate(timeout=300)
    assert running.returncode == 0, complaints
    assert len(lines(tmp_path / "outputs" / "ray_offline" / "results.jsonl")) == 96
    for noise in ("raylet", "gcs", "core_worker", "uthenticat", "ashboard", "Started a local"):
        assert noise not in told + complaints, complaints
    assert not (tmp_path / ".ray").exists(), "nothing is put into the home directory"
    again = command(*example, "engine=local", home=tmp_path)
    again.communicate(timeout=120)
    assert again.returncode == 0


def test_ctrl_c_stops_gently_and_ends_ray(tmp_path: Path) -> None:
    told = config(tmp_path, rows=questions(3000), generation__mock={"latency_ms": 100}, engine="ray")
    (tmp_path / "run.yaml").write_bytes(orjson.dumps(told))
    running = command("run", "run.yaml", home=tmp_path)
    journal = tmp_path / "run" / "results.jsonl"
    while running.poll() is None and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.05)
    below = descendants(running.pid)
    assert len(below) > 5
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the driver and to all that it started
    _, complaints = running.communicate(timeout=120)
    assert running.returncode == 130, complaints
    assert "Lost actor" not in complaints, "what the terminal sends does not reach the actors"
    assert none_left(below)
    assert 0 < len(results(tmp_path)) < 3000


def test_inside_a_job_the_cluster_is_found(tmp_path: Path, nodes: Nodes) -> None:
    """As `ray job submit` starts a command: the address and the job's settings are in its environment."""
    told = config(tmp_path, rows=questions(5), engine="ray")
    (tmp_path / "run.yaml").write_bytes(orjson.dumps(told))
    job = '{"runtime_env": {}, "metadata": {"job_submission_id": "raysubmit_test"}}'
    running = command(
        "run", "run.yaml", home=tmp_path, RAY_ADDRESS=nodes.address, RAY_JOB_CONFIG_JSON_ENV_VAR=job,
        RAY_AUTH_MODE="disabled",
    )  # fmt: skip
    _, complaints = running.communicate(timeout=200)
    assert running.returncode == 0, complaints
    assert len(results(tmp_path)) == 5
