# SPDX-License-Identifier: Apache-2.0
"""One run, several rewards: each judges the samples of its split, in its own way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import load_config
from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.split_rewards import unverified
from reward_kit.models import Message

HERE = "tests.execution.test_split_rewards"
ROWS = [
    {"id": f"{split}{number}", "user_query": f"{number}?", "split": split, "assistant_response": str(number)}
    for split in ("a", "b", "c")
    for number in range(3)
]


async def on_the_loop(response: str) -> dict[str, Any]:
    return {"score": 1.0, "reason": f"loop {os.getpid()}"}


def in_a_worker(response: str) -> dict[str, Any]:
    return {"score": float(response), "reason": f"worker {os.getpid()}"}


async def of_the_group(rollouts_messages: list[list[Message]]) -> list[dict[str, float]]:
    return [{"score": float(len(rollouts_messages))} for _ in rollouts_messages]


def config(home: Path, **reward: Any) -> dict[str, Any]:
    named = {"b": {"function_path": f"{HERE}:in_a_worker", "pass_threshold": 2.0}}
    return {
        "generation": {"enabled": False},
        "reward": {"function_path": f"{HERE}:on_the_loop", "by_split": named, **reward},
        "output": {"output_dir": str(home / "run")},
    }


def run(told: dict[str, Any], **options: Any) -> Any:
    return EvaluationPipeline(told, samples=ROWS, **options).run()


def test_each_split_is_judged_by_its_own_reward_where_that_belongs(tmp_path: Path) -> None:
    result = run(config(tmp_path))
    told = {row["id"]: row["evaluation_reason"] for row in result.rows()}
    assert {told[f"a{n}"] for n in range(3)} == {told[f"c{n}"] for n in range(3)} == {f"loop {os.getpid()}"}
    assert all(told[f"b{n}"].startswith("worker") and not told[f"b{n}"].endswith(str(os.getpid())) for n in range(3))


def test_figures_come_by_split_too_with_the_threshold_of_each(tmp_path: Path) -> None:
    summary = run(config(tmp_path)).summary
    assert (summary["judged"], summary["passed"]) == (9, 7)
    assert summary["splits"].keys() == {"b"}
    assert (summary["splits"]["b"]["judged"], summary["splits"]["b"]["passed"]) == (3, 1)


def test_another_threshold_of_a_split_is_another_summary_and_nothing_is_judged_again(tmp_path: Path) -> None:
    run(config(tmp_path))
    told = config(tmp_path)
    told["reward"]["by_split"]["b"]["pass_threshold"] = 1.0
    result = run(told)
    assert result.summary["splits"]["b"]["passed"] == 2
    assert result.counters.scored == 0


def test_another_reward_of_a_split_is_refused_until_it_is_asked_for(tmp_path: Path) -> None:
    run(config(tmp_path))
    told = config(tmp_path)
    told["reward"]["by_split"]["b"]["function_path"] = f"{HERE}:on_the_loop"
    with pytest.raises(StorageError, match=r"b\.reward\.function: 'in_a_worker' then, 'on_the_loop' now"):
        run(told)
    assert run(told, rescore=True).summary["splits"]["b"]["passed"] == 0


def test_rewards_that_judge_groups_and_single_answers_live_together(tmp_path: Path) -> None:
    named = {"b": {"function_path": f"{HERE}:of_the_group"}}
    told = config(tmp_path, by_split=named)
    rows = [{**row, "assistant_response": ["1", "2"]} for row in ROWS]
    result = EvaluationPipeline(told, samples=rows).run()
    scores = {(row["id"], row["response_index"]): row["evaluation_score"] for row in result.rows()}
    assert {scores[f"b{number}", draw] for number in range(3) for draw in (0, 1)} == {2.0}
    assert {scores[f"a{number}", draw] for number in range(3) for draw in (0, 1)} == {1.0}


def test_a_split_that_is_split_again_is_refused() -> None:
    inner = {"function_path": "a:b", "by_split": {"x": {"function_path": "a:b"}}}
    with pytest.raises(ConfigError, match="split 'math' cannot have a by_split of its own"):
        load_config({"reward": {"function_path": "a:b", "by_split": {"math": inner}}})


def test_a_reward_that_cannot_be_loaded_is_said_at_once(tmp_path: Path) -> None:
    told = config(tmp_path, by_split={"b": {"function_path": f"{HERE}:gone"}})
    with pytest.raises(ConfigError, match="has no attribute 'gone'"):
        run(told)
    assert not (tmp_path / "run").exists()


async def test_without_a_verifier_there_is_no_verdict() -> None:
    result = await unverified(messages=[Message(role="assistant", content="4")], split="chat")
    assert not result.is_score_valid and "'chat'" in (result.reason or "")
