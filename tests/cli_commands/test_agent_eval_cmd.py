# SPDX-License-Identifier: Apache-2.0
"""`reward-kit agent-eval`: which tasks are played, how it ends, and going on after kill -9."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLAYER = """
import json, os, signal
from pathlib import Path
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message

HERE = Path(__file__).parent

def act(messages, draw):
    with (HERE / "asked.txt").open("a") as file:
        file.write(".")
    if (HERE / "kill").exists() and len((HERE / "asked.txt").read_text()) == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    done = sum(message.role == "assistant" for message in messages)
    if done == 3:
        return Message(role="assistant", content="done")
    call = FunctionCall(name="update_state", arguments=json.dumps({"updates": {f"step {done}": draw}}))
    return Message(role="assistant", content="", tool_calls=[ChatCompletionMessageToolCall(id="1", function=call)])

def judged(messages, state, **kwargs):
    return float(len(state["resource"].get_state()) == 3)

def unjudged(messages, **kwargs):
    raise OSError("no verdict")
"""

TASK = """
name: {name}
resource_type: PythonStateResource
reward_function_path: player.py:{reward}
initial_user_prompt: Count.
num_rollouts: 3
generation: {{mock: {{function_path: "player.py:act"}}, cache: {{enabled: false}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "player.py").write_text(PLAYER)
    for name in ("one", "two"):
        (tmp_path / "tasks" / f"{name}.yaml").write_text(TASK.format(name=name, reward="judged"))
    return tmp_path


def agent_eval(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reward_kit.cli", "agent-eval", "--model", "mock", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=folder)


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_all_tasks_of_a_directory_or_those_that_are_named(folder: Path) -> None:
    figures = told(agent_eval(folder, "--task-def", "tasks", "--parallel", "--json"))
    assert {name: one["individual_scores"] for name, one in figures.items()} == {"one": [1.0] * 3, "two": [1.0] * 3}
    assert sorted(path.name for path in (folder / "agent_runs").iterdir()) == ["one", "two"]
    both = told(agent_eval(folder, "--task-def", "tasks", "--filter", "one", "two", "--num-rollouts", "3", "--json"))
    assert set(both) == {"one", "two"}
    arguments = ["--task-def", "tasks", "--filter", "two", "--num-rollouts", "5", "--output-dir", "out"]
    done = agent_eval(folder, *arguments)
    assert (done.returncode, done.stdout) == (0, "two: mean score 1.000 of 5 episodes\nFiles: out\n")


def test_after_kill_9_it_goes_on_and_asks_only_for_the_turns_that_are_missing(folder: Path) -> None:
    (folder / "tasks" / "kill").touch()
    killed = agent_eval(folder, "--task-def", "tasks/one.yaml", "--max-concurrency", "1", "--json")
    assert killed.returncode == -9
    (folder / "tasks" / "kill").unlink()
    figures = told(agent_eval(folder, "--task-def", "tasks/one.yaml", "--max-concurrency", "1", "--json"))
    assert figures["one"]["individual_scores"] == [1.0] * 3
    asked = len((folder / "tasks" / "asked.txt").read_text())
    assert asked == 3 * 4 + 1  # four turns of each episode, and the one that was never answered


def test_another_reward_judges_the_same_episodes_again(folder: Path) -> None:
    arguments = ["--task-def", "tasks/one.yaml"]
    told(agent_eval(folder, *arguments, "--json"))
    asked = (folder / "tasks" / "asked.txt").read_text()
    player = folder / "tasks" / "player.py"
    player.write_text(PLAYER.replace("return float(len", "return 0.25 * float(len"))
    refused = agent_eval(folder, *arguments)
    assert refused.returncode != 0 and "--rescore" in refused.stdout + refused.stderr
    figures = told(agent_eval(folder, *arguments, "--rescore", "--json"))
    assert figures["one"]["individual_scores"] == [0.25] * 3
    assert (folder / "tasks" / "asked.txt").read_text() == asked


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--task-def", "missing"], 2, "no task definition 'missing'"),
        (["--task-def", "tasks", "--filter", "three"], 2, "no task 'three'"),
        (["--task-def", "tasks", "--filter", "one", "three"], 2, "no task 'three'"),
        (["--task-def", "tasks", "one"], 2, "unexpected argument 'one'"),
        (["--task-def", "empty"], 2, "no task definition"),
        (["--task-def", "unjudged.yaml"], 1, "no verdict"),
        (["--task-def", "tasks", "--max-concurrency", "0"], 2, "max-concurrency"),
        ([], 2, "--task-def"),
    ],
)
def test_what_goes_wrong_is_said(folder: Path, arguments: list[str], code: int, problem: str) -> None:
    (folder / "empty").mkdir()
    (folder / "player.py").write_text(PLAYER)
    (folder / "unjudged.yaml").write_text(TASK.format(name="u", reward="unjudged"))
    done = agent_eval(folder, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert problem in done.stdout + done.stderr
