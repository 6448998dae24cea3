# SPDX-License-Identifier: Apache-2.0
"""The example of an agent in a shell: what its two rewards see of the same episodes, and what they cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples.agent_shell.reward import answered
from tests.examples.commands import reward_kit
from tests.execution.shell_support import require_namespaces

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "agent_shell"
CONFIG = ["--config-path", str(EXAMPLE / "conf"), "--config-name", "run", "--quiet"]
STRICT = ["--rescore", "reward.function_path=reward.py:left_in_order"]
JOBS = [json.loads(line) for line in (EXAMPLE / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]


def run(folder: Path, *more: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The results of a run, by job and attempt."""
    reward_kit("run", *CONFIG, f"output.output_dir={folder}", *more)
    return {(row["id"], row["response_index"]): row for row in rows(folder / "results.jsonl")}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_second_reward_sees_what_the_first_cannot_in_the_same_episodes(tmp_path: Path) -> None:
    require_namespaces()
    lenient = run(tmp_path)
    expected = {(job["id"], attempt): float(attempt < 2) for job in JOBS for attempt in range(3)}
    assert {key: row["evaluation_score"] for key, row in lenient.items()} == expected
    played = (tmp_path / "rollouts.jsonl").read_bytes()
    rollouts = {(row["id"], row["response_index"]): row for row in rows(tmp_path / "rollouts.jsonl")}
    assert rollouts["count-errors", 0]["facts"] == {"files": {"answer.txt": "3\n", "server.ini": None}}
    assert rollouts["count-errors", 2]["steps"][0]["calls"][0]["error"] == "not_found"

    strict = run(tmp_path, *STRICT)
    assert (tmp_path / "rollouts.jsonl").read_bytes() == played, "nothing was played again"
    assert {key: row["evaluation_score"] for key, row in strict.items()} == {
        key: float(key[1] == 0) for key in expected
    }
    reasons = {job["id"]: strict[job["id"], 1]["evaluation_reason"] for job in JOBS}
    assert reasons["count-errors"] == "There is no app.log."
    assert reasons["change-port"] == "clients.txt does not hold what it should."
    assert reasons["word-count"] == "words.sh does not do its work on another file."


def test_commands_replaced_by_the_model_do_not_deceive_the_second_reward(tmp_path: Path) -> None:
    require_namespaces()
    script = tmp_path / "liar.py"
    script.write_text(
        "from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message\n"
        "import json\n"
        "LIES = 'cat() { echo 3; }; test() { true; }; alias cat=true; echo wrong > answer.txt; rm app.log'\n"
        "def act(messages, draw):\n"
        "    if messages[-1].role == 'tool':\n"
        "        return 'Done.'\n"
        "    function = FunctionCall(name='bash', arguments=json.dumps({'command': LIES}))\n"
        "    calls = [ChatCompletionMessageToolCall(id='c', function=function)]\n"
        "    return Message(role='assistant', content='', tool_calls=calls)\n"
    )
    lies = [f"generation.mock.function_path={script}:act", "generation.n=1", "dataset.max_samples=1"]
    assert run(tmp_path / "run", *lies)["count-errors", 0]["evaluation_score"] == 0.0
    strict = run(tmp_path / "run", *lies, *STRICT)["count-errors", 0]
    assert strict["evaluation_score"] == 0.0
    assert strict["evaluation_reason"] == "There is no app.log. answer.txt does not hold what it should."


@pytest.mark.parametrize(
    ("content", "score"), [("3\n", 1.0), (" 3", 1.0), ("33", 0.0), ("", 0.0), (None, 0.0)], ids=repr
)
def test_the_first_reward_compares_whole_files(content: str | None, score: float) -> None:
    judged = answered(messages=[], facts={"files": {"answer.txt": content}}, want={"answer.txt": "3"})
    assert judged.score == score
