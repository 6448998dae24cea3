# SPDX-License-Identifier: Apache-2.0
"""The image: its Dockerfile; and, with a real engine (`make test-containers`), building, running and calling it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from reward_kit.deploy.bundle import BundleSource, make_bundle
from reward_kit.deploy.dockerfile import default_base, image_files
from reward_kit.deploy.state import Deployments
from reward_kit.errors import DeployError
from tests.cli_commands.conftest import Call

BASE = "debian:bookworm-slim"
"""Made from a root filesystem by scripts/with-docker.sh; its Python is 3.11."""


def test_the_dockerfile_is_small_pinned_and_not_root(source: BundleSource) -> None:
    files = image_files(make_bundle(source, extras=("serve",)), default_base("3.12"), {}, {"insecure": True})
    lines = files["Dockerfile"].decode().splitlines()
    assert "ARG BASE=python:3.12-slim-bookworm" in lines
    assert lines.count("USER 10001:10001") == 1
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    commands = [line for line in lines if line.startswith(("RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"))]
    for line in commands:
        json.loads(line[line.index("[") :])  # exec form, all of them
    assert all("==" in line for line in files["constraints.txt"].decode().splitlines())
    assert not any("secret" in line.lower() for line in lines)
    with pytest.raises(DeployError, match="not the name of an image"):
        image_files(make_bundle(source), "x\nRUN rm -rf /", {}, {})


# ── with an engine ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def engine() -> str:
    """A docker engine that has the base image."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not here")
    done = subprocess.run(["docker", "image", "inspect", BASE], capture_output=True, check=False, text=True)
    if done.returncode != 0:
        pytest.skip(f"docker does not work here: {done.stderr.strip()[:100]}")
    return "docker"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def ask(url: str, key: str) -> tuple[int, dict[str, object]]:
    body = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "5"}], "ground_truth": "4"}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"X-Api-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {}


def inside(container: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", "exec", container, *command], capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
def test_docker_builds_runs_and_removes_the_reward(engine: str, house: Path, call: Call, project: Path) -> None:
    port = free_port()
    deploy = (
        "deploy", "--id", "exact", "--target", "docker", "--function-ref", "rewards.py:exact", "--wheelhouse", house,
        "--base-image", BASE, "--docker-network", "host", "--local-port", str(port), "-p", "bonus=0.25",
    )  # fmt: skip
    said = call(*deploy)
    assert said.code == 0, said.err + said.out
    assert "verdict: 1" in said.out
    made = Deployments().get("exact")
    key_file = Path(".reward_kit/deployments/exact/api-key")
    key = key_file.read_text().strip()
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert ask(made.url, key) == (200, ask(made.url, key)[1]) and ask(made.url, key)[1]["score"] == 0.25
    assert ask(made.url, "wrong-wrong-wrong-wrong")[0] == 403

    name = "reward-kit-exact"
    assert inside(name, "id", "-u").stdout.strip() == "10001"
    assert inside(name, "touch", "/srv/x").returncode != 0 and inside(name, "touch", "/opt/x").returncode != 0
    assert inside(name, "touch", "/tmp/x").returncode == 0
    assert inside(name, "cat", "/srv/project/.env").returncode != 0
    shown = json.loads(subprocess.run(["docker", "inspect", name], capture_output=True, check=True).stdout)[0]
    assert shown["HostConfig"]["ReadonlyRootfs"] and shown["HostConfig"]["CapDrop"] == ["ALL"]
    assert key not in json.dumps([shown["Args"], shown["Config"]["Cmd"], shown["Config"]["Entrypoint"]])
    health = shown["Config"]["Healthcheck"]["Test"]
    assert inside(name, *health[1:]).returncode == 0
    history = subprocess.run(
        ["docker", "history", "--no-trunc", shown["Config"]["Image"]], capture_output=True, text=True, check=True
    ).stdout
    assert key not in history

    assert "running" in call("deploy", "status", "exact").out
    again = call(*deploy)  # the same source: the image is there, and only the container is new
    assert again.code == 0 and "found: the image" in again.out
    assert call("deploy", "delete", "exact").code == 0
    for kind, thing in (("container", name), ("image", shown["Config"]["Image"])):
        left = subprocess.run(["docker", kind, "inspect", thing], capture_output=True, check=False)
        assert left.returncode != 0
