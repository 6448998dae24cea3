# SPDX-License-Identifier: Apache-2.0
"""The example with an MCP server: it runs as it is, and a server that dies is never a score."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_mcp"
BAD_SERVER = EXAMPLE.parents[1] / "tests" / "agent" / "mcp" / "server_of_ours.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "agent_mcp"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("outputs", "__pycache__"))
    return copy


def run(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reward_kit", "run", "--config-path", "conf", "--config-name", "run", *overrides]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1]), "PATH": path}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    text = (folder / "outputs" / "agent_mcp" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_it_runs_as_it_is_and_judges_what_is_on_the_desk(folder: Path) -> None:
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
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


def test_a_server_that_dies_in_the_middle_of_a_call_fails_the_rollout_and_is_no_score(folder: Path) -> None:
    (folder / "agent.py").write_text(
        "from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message\n"
        "def act(messages, draw):\n"
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
