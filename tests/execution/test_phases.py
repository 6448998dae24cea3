# SPDX-License-Identifier: Apache-2.0
"""Generating here and scoring elsewhere: the same records as doing both at once, without dataset, key or network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from tests.generation.loopback import Says, answer
from tests.loopback.endpoint import honest, serving
from tests.loopback.runs import config, judged, lines, questions, results

ELSEWHERE = """
import sys

def forbid(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.sendto"} and not (
        event == "socket.connect" and isinstance(arguments[1], str)  # a path: not the network
    ):
        raise PermissionError(f"the network is forbidden here: {event} {arguments[1:]}")
    if event == "open" and str(arguments[0]).endswith("dataset.jsonl"):
        raise PermissionError("the dataset is gone")

sys.addaudithook(forbid)
import orjson
from reward_kit.execution.pipeline import EvaluationPipeline

told = orjson.loads(sys.stdin.buffer.read())
result = EvaluationPipeline(told, phase="execution").run()
assert result.status == "finished", result
"""


def run(told: dict[str, Any], **options: Any) -> RunResult:
    return EvaluationPipeline(told, **options).run()


def score_elsewhere(told: dict[str, Any]) -> None:
    """In another process, without a key, where every connection is refused."""
    environment = {name: value for name, value in os.environ.items() if "KEY" not in name}
    command = [sys.executable, "-c", ELSEWHERE]
    root = Path(__file__).parents[2]
    subprocess.run(command, input=orjson.dumps(told), cwd=root, env=environment, check=True, timeout=60)


def rich_rows() -> list[dict[str, Any]]:
    rows = questions(5)
    rows[1] |= {"nothing": None, "nested": {"a": [1, None]}, "system_prompt": "Be kind."}
    rows[2]["ground_truth_for_eval"] = {"value": 2.5, "unit": None}
    return rows


def with_tools(body: dict[str, Any], number: int) -> Says:
    """An answer of only a tool call, with no content, to some prompts."""
    if "3" not in body["messages"][-1]["content"]:
        return honest(body, number)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
    choice = {"message": message, "finish_reason": "tool_calls"}
    return Says(200, {"choices": [choice] * body.get("n", 1)})


@pytest.mark.parametrize("reward", ["quick", "steady", "ranking", "tests.execution.test_phases:sees"])
def test_both_equals_inference_then_execution_elsewhere(tmp_path: Path, reward: str) -> None:
    path = {"reward__function_path": reward} if ":" in reward else {"reward": reward}
    with serving(with_tools) as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_KEY", "sk-secret")
        told = config(tmp_path, endpoint.api_base, rows=rich_rows(), generation__n=2, generation__api_key_env="MY_KEY",
                      dataset__split="test", **path)  # fmt: skip
        at_once = told | {"output": {"output_dir": str(tmp_path / "at-once")}}
        run(at_once)
        run(told, phase="inference")
    assert not (tmp_path / "run" / "results.jsonl").exists()
    (tmp_path / "dataset.jsonl").unlink()
    score_elsewhere(told)
    assert judged(results(tmp_path)) == judged(results(tmp_path, "at-once"))
    assert list(results(tmp_path)) == list(results(tmp_path, "at-once"))
    figures = [orjson.loads((tmp_path / run / "summary.json").read_bytes()) for run in ("run", "at-once")]
    for name in ("samples", "records", "judged", "failed", "mean_score", "pass_at_k", "metrics", "prompt_tokens"):
        assert figures[0][name] == figures[1][name], name


async def sees(messages: list[Any], ground_truth: Any = None, **columns: Any) -> dict[str, Any]:
    """A reward whose reason is everything that it was handed."""
    seen = {"messages": [message.model_dump() for message in messages], "truth": ground_truth, "columns": columns}
    return {"score": 1.0, "reason": orjson.dumps(seen, option=orjson.OPT_SORT_KEYS).decode()}


def test_a_rollouts_file_is_scored_into_another_directory_and_left_as_it_is(tmp_path: Path) -> None:
    run(config(tmp_path, generation__n=2))
    source = tmp_path / "somewhere" / "rollouts.jsonl"
    source.parent.mkdir()
    shutil.move(tmp_path / "run" / "rollouts.jsonl", source)
    shutil.move(tmp_path / "run" / "samples.jsonl", source.with_name("samples.jsonl"))
    content = source.read_bytes() + b'{"schema":1,"id":"torn'
    source.write_bytes(content)
    source.chmod(0o444)
    expected = judged(results(tmp_path))
    told: dict[str, Any] = {
        "rollouts_file": str(source),
        "reward": config(tmp_path)["reward"],
        "output": {"output_dir": str(tmp_path / "scored")},
    }
    result = run(told)
    assert judged(results(tmp_path, "scored")) == expected
    assert set(result.summary["pass_at_k"]) == {"1", "2"}
    assert source.read_bytes() == content
    assert not (tmp_path / "scored" / "rollouts.jsonl").exists()
    assert run(told).counters.scored == 0


def test_another_rollouts_file_may_not_enter_the_directory_of_the_first(tmp_path: Path) -> None:
    def react(body: dict[str, Any], _: int) -> Says:
        return answer(f"{body['model']} says", model=body["model"])

    for home, model in (("a", "first"), ("b", "second")):
        (tmp_path / home).mkdir()
        with serving(react) as endpoint:
            run(config(tmp_path / home, endpoint.api_base, generation__model_name=model), phase="inference")
    told = {"reward": config(tmp_path)["reward"], "output": {"output_dir": str(tmp_path / "scored")}}
    run(told | {"rollouts_file": str(tmp_path / "a" / "run" / "rollouts.jsonl")})
    with pytest.raises(StorageError, match="other settings"):
        run(told | {"rollouts_file": str(tmp_path / "b" / "run" / "rollouts.jsonl")})
    assert results(tmp_path, "scored")["s0", 0]["assistant_response"] == "first says"


def test_scoring_without_rollouts_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    told = config(tmp_path)
    for options in ({"phase": "execution"}, {"rescore": True}):
        with pytest.raises(ConfigError, match="phase=inference"):
            run(told, **options)
    with pytest.raises(ConfigError, match=r"missing\.jsonl"):
        run(told | {"rollouts_file": str(tmp_path / "missing.jsonl")})
    assert not (tmp_path / "run").exists()


def test_results_are_not_rollouts(tmp_path: Path) -> None:
    run(config(tmp_path))
    told = config(
        tmp_path, rollouts_file=str(tmp_path / "run" / "results.jsonl"), output__output_dir=str(tmp_path / "x")
    )
    with pytest.raises(StorageError, match="is not a rollout"):
        run(told)


def test_failed_rollouts_stay_failures_when_scored_later(tmp_path: Path) -> None:
    with serving(lambda body, number: Says(400, {"error": {"message": "no"}})) as endpoint:
        told = config(tmp_path, endpoint.api_base)
        assert run(told, phase="inference").failed == 4
        result = run(told, phase="execution")
    assert (result.judged, result.failed) == (0, 4)
    assert {row["evaluation_score"] for row in results(tmp_path).values()} == {None}


def test_scoring_may_begin_while_rollouts_are_still_being_made(tmp_path: Path) -> None:
    told = config(tmp_path, generation__n=2)
    run(told | {"evaluation_params": {"limit_samples": 2}}, phase="inference")
    assert run(told, phase="execution").judged == 4
    run(told, phase="inference")
    later = run(told, phase="execution")
    assert (later.judged, later.counters.scored) == (8, 4)
    assert len(lines(tmp_path / "run" / "rollouts.jsonl")) == 8
