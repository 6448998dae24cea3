# SPDX-License-Identifier: Apache-2.0
"""A sandbox as tools: real commands in real sandboxes, one per episode, and nothing of them on this machine."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import load_config
from reward_kit.errors import EndpointError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.models import Message
from tests.agent.worlds import Model, call, calls, says
from tests.execution.shell_support import require_namespaces
from tests.loopback.runs import lines

REWARD = Path(__file__)
ROWS: list[dict[str, Any]] = [
    {"id": "s", "prompt": "Copy it.", "files": {"in.txt": "hello"}, "setup": ["mkdir -p d", "echo made > d/made.txt"]}
]


def config(home: Path, **agent: Any) -> dict[str, Any]:
    return {
        "generation": {"model_name": "mock", "n": 2, "cache": {"enabled": False}},
        "agent": {"sandbox_tools": ["bash", "python", "read_file", "write_file"], **agent},
        "reward": {"function_path": f"{REWARD}:judged"},
        "output": {"output_dir": str(home / "run")},
    }


async def judged(messages: list[Message], facts: dict[str, Any], world: Any) -> float:
    """Judge by the file that was kept, and by the same file in a sandbox in which all was done again."""
    (read,) = await world.use_tools(calls(call("read_file", {"path": "out.txt"}, "mine")))
    return float(read.content == facts["files"]["out.txt"])


def script(messages: Any, draw: int) -> Message:
    turns: list[Message] = [
        calls(call("bash", {"command": "cd d && cat made.txt ../in.txt && date +%N"})),
        calls(call("bash", {"command": "pwd; exit 3"})),
        calls(call("python", {"code": f"print(6 * 7); open('../out.txt', 'w').write('from python {draw}')"})),
        calls(call("read_file", {"path": "absent"}), call("bash", {"command": "cat /etc/shadow | wc -c; id -u"}, "x")),
        calls(call("write_file", {"path": "deep/er/file.txt", "content": "x"})),
        says("done"),
    ]
    spoken: int = sum(message.role == "assistant" for message in messages)
    return turns[spoken]


def run(home: Path, model: Model, **agent: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    pipeline = EvaluationPipeline(load_config(config(home, **agent)), samples=ROWS, client=model)
    assert pipeline.run().status == "finished"
    return lines(home / "run" / "rollouts.jsonl"), lines(home / "run" / "results.jsonl")


def test_an_agent_works_in_a_sandbox_of_its_own_and_is_judged_in_another(tmp_path: Path) -> None:
    require_namespaces()
    rollouts, results = run(tmp_path, Model(script), capture=["out.txt", "nothing.txt"])
    for draw, rollout in enumerate(rollouts):
        shown = [turn["content"] for turn in rollout["turns"] if turn["role"] == "tool"]
        assert shown[0].startswith("made\nhello") and shown[0].endswith("[exit code 0]")
        assert "/d\n[exit code 3]\n[the shell has ended" in shown[1], "a shell that stays: the directory lasts"
        assert shown[2] == "42\n[exit code 0]"
        assert '"kind":"not_found"' in shown[3]
        assert rollout["facts"] == {"files": {"out.txt": f"from python {draw}", "nothing.txt": None}}
    assert [row["evaluation_score"] for row in results] == [1.0, 1.0]
    assert not list(tmp_path.rglob("out.txt"))


def test_an_interrupted_episode_goes_on_although_a_shell_never_says_the_same_twice(tmp_path: Path) -> None:
    require_namespaces()

    class Impatient(Model):
        async def generate(self, messages: Any, **asked: Any) -> Any:
            if len(self.asked) == 7:
                raise EndpointError("The endpoint is gone.")
            return await super().generate(messages, **asked)

    first = Impatient(script)
    with pytest.raises(EndpointError):
        run(tmp_path, first, capture=["out.txt"])
    later = Model(script)
    rollouts, results = run(tmp_path, later, capture=["out.txt"])
    assert [row["evaluation_score"] for row in results] == [1.0, 1.0]
    assert [rollout["facts"]["files"]["out.txt"] for rollout in rollouts] == ["from python 0", "from python 1"]
    assert len(later.asked) == 12 - 7, "what was answered before is not asked again"


def test_a_binary_file_is_said_with_its_size(tmp_path: Path) -> None:
    require_namespaces()
    turns = [calls(call("bash", {"command": r"printf '\x89PNG\xff\x00' > p.png"})),
             calls(call("read_file", {"path": "p.png"})), says("done")]  # fmt: skip
    given = config(tmp_path) | {"reward": {"function_path": f"{REWARD}:one"}}
    EvaluationPipeline(load_config(given), samples=ROWS, client=Model(turns)).run()
    rollout = lines(tmp_path / "run" / "rollouts.jsonl")[0]
    _, picture = [turn["content"] for turn in rollout["turns"] if turn["role"] == "tool"]
    assert "'p.png' is a binary file of 6 bytes" in picture and '"kind":"not_text"' in picture


def one(messages: list[Message]) -> float:
    return 1.0


def keeps_bytes(messages: list[Message], facts: dict[str, Any]) -> float:
    """1 where the file is kept as it was."""
    files = facts["files"]
    kept = base64.b64decode(files["out.bin"]["base64"])
    return float(kept == b"\x89PNG\xff\x00" and files["out.txt"] == "é")


def test_a_captured_file_that_is_no_text_is_kept_byte_for_byte(tmp_path: Path) -> None:
    require_namespaces()
    write = calls(call("bash", {"command": r"printf '\x89PNG\xff\x00' > out.bin; printf 'é' > out.txt"}))
    given = config(tmp_path, capture=["out.bin", "out.txt"]) | {"reward": {"function_path": f"{REWARD}:keeps_bytes"}}
    pipeline = EvaluationPipeline(load_config(given), samples=ROWS, client=Model([write, says("done")]))
    assert pipeline.run().mean_score == 1.0
