# SPDX-License-Identifier: Apache-2.0
"""The example with an MCP server: it runs as it is, and a server that dies is never a score."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.examples.commands import python

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_mcp"
BAD_SERVER = EXAMPLE.parents[1] / "tests" / "agent" / "mcp" / "server_of_ours.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "agent_mcp"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("outputs", "__pycache__"))
    return copy


COMMAND = [sys.executable, "-m", "reward_kit", "run", "--config-path", "conf", "--config-name", "run"]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1]), "PATH": path}


def run(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *overrides]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=110, check=False
    )


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / "outputs" / "agent_mcp" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_it_runs_as_it_is_and_judges_what_is_on_the_desk(folder: Path) -> None:
    told = python(folder / "local_eval.py", "--output", folder / "outputs" / "agent_mcp")
    assert told == "delivered: 0.667 of 6 orders\npass@2: 1.000\n"
    scores = {(row["id"], row["response_index"]): row["evaluation_score"] for row in lines(folder, "results.jsonl")}
    assert scores == {
        ("one-shelf", 0): 1.0,
        ("one-shelf", 1): 1.0,
        ("two-shelves", 0): 1.0,
        ("two-shelves", 1): 0.0,
        ("other-shelf", 0): 1.0,
        ("other-shelf", 1): 0.0,
    }
    rollouts = {(row["id"], row["response_index"]): row for row in lines(folder, "rollouts.jsonl")}
    assert rollouts["two-shelves", 0]["facts"] == {"warehouse": {"desk": {"chair": 4}}}
    assert rollouts["other-shelf", 1]["steps"][0]["calls"][0]["error"] == "exception"


def test_a_run_that_is_killed_leaves_no_server_and_goes_on_in_worlds_that_are_played_again(folder: Path) -> None:
    agent = folder / "mock_model.py"
    log = folder / "asked.log"
    # Each turn is noted. While there is a file called slow, those after the eighth are not answered for long.
    agent.write_text(
        agent.read_text()
        + "\n_answer = answer\n\ndef answer(messages, draw):\n"
        + "    import os, time\n"
        + "    with open('asked.log', 'a') as log:\n"
        + "        log.write('x\\n')\n"
        + "    if os.path.exists('slow') and os.path.getsize('asked.log') > 16:\n"
        + "        time.sleep(600)\n"
        + "    return _answer(messages, draw)\n"
    )
    (folder / "slow").touch()
    with subprocess.Popen(
        COMMAND, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as first:
        until = time.monotonic() + 100
        while time.monotonic() < until and not (log.exists() and log.stat().st_size > 16):
            time.sleep(0.05)
        first.kill()
    asked = log.stat().st_size // 2
    until = time.monotonic() + 60
    while servers_in(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert servers_in(folder) == []
    (folder / "slow").unlink()
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    scores = {(row["id"], row["response_index"]): row["evaluation_score"] for row in lines(folder, "results.jsonl")}
    assert [scores[key] for key in sorted(scores)] == [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    turns = sum(len(row["steps"]) for row in lines(folder, "rollouts.jsonl"))
    assert turns == 16
    assert asked > 8
    assert log.stat().st_size // 2 <= turns + 6, "what was asked is asked again only where it was under way"


def servers_in(folder: Path) -> list[str]:
    """Servers that were started in the folder and still run."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=2) for line in listed.splitlines() if "agent.mcp.server" in line]
    running = [pid for pid, state, _ in found if not state.startswith("Z")]
    return [pid for pid in running if folder == _directory_of(pid)]


def _directory_of(pid: str) -> Path | None:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return None


def test_a_server_that_dies_in_the_middle_of_a_call_fails_the_rollout_and_is_no_score(folder: Path) -> None:
    (folder / "mock_model.py").write_text(
        "from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message\n"
        "def answer(messages, draw):\n"
        "    if messages[-1].role == 'tool':\n"
        "        return 'well'\n"
        "    call = FunctionCall(name=['die', 'count'][draw % 2], arguments='{}')\n"
        "    calls = [ChatCompletionMessageToolCall(id='c', type='function', function=call)]\n"
        "    return Message(role='assistant', content=None, tool_calls=calls)\n"
    )
    (folder / "reward.py").write_text("def delivered(messages, **_):\n    return 1.0\n")
    command = f"agent.params.command=[{sys.executable},{BAD_SERVER}]"
    done = run(folder, command, "~agent.params.start", "~agent.params.facts")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    rollouts = {(row["id"], row["response_index"]): row for row in lines(folder, "rollouts.jsonl")}
    failed = {key: row for key, row in rollouts.items() if key[1] == 0}
    assert len(failed) == 3
    for row in failed.values():
        assert row["status"] != "ok"
        assert "falling piano" in json.dumps(row)
    scored = {(row["id"], row["response_index"]): row.get("evaluation_score") for row in lines(folder, "results.jsonl")}
    assert {key: score for key, score in scored.items() if score is not None} == {
        key: 1.0 for key in rollouts if key[1] == 1
    }
