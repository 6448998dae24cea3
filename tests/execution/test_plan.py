# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: right numbers, with nobody asked, nothing written, and no key needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import load_config
from reward_kit.errors import ConfigError, StorageError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.plan import Plan
from tests.generation.loopback import Reaction, complains
from tests.loopback.endpoint import honest, prompt_of, serving
from tests.loopback.runs import config, questions

PRICE = {"input": 1.0, "output": 10.0}


def plan(told: dict[str, Any], **options: Any) -> Plan:
    return EvaluationPipeline(told, **options).plan()


def files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_fresh_run_is_planned_without_a_key_a_call_or_a_file(tmp_path: Path) -> None:
    told = config(
        tmp_path,
        rows=questions(5),
        generation__n=3,
        generation__model_name="gpt-6-luna",
        generation__max_tokens=100,
        generation__cache={"enabled": True, "cache_dir": str(tmp_path / "cache")},
    )
    before = files(tmp_path)
    found = plan(told)
    assert (found.rows, found.rollouts, found.on_disk, found.cached) == (5, 15, 0, 0)
    assert (found.requests, found.answers_to_generate, found.to_score) == (5, 15, 15)
    assert found.completion_tokens == 1500
    assert found.cost == pytest.approx((found.most_prompt_tokens * 0.10 + 1500 * 0.50) / 1e6)
    assert found.prompt_tokens < found.most_prompt_tokens
    assert found.first_prompt == [{"role": "user", "content": questions(1)[0]["user_query"]}]
    assert any("OPENAI_API_KEY" in remark for remark in found.remarks)
    assert files(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == {"dataset.jsonl"}


def test_a_price_that_is_not_known_is_not_invented(tmp_path: Path) -> None:
    assert plan(config(tmp_path, "http://localhost:1/v1")).cost is None
    assert plan(config(tmp_path, "http://localhost:1/v1", generation__price=PRICE)).cost is not None


def test_what_is_on_disk_and_what_is_cached_is_not_paid_again(tmp_path: Path) -> None:
    with serving(honest) as endpoint:
        cache = {"enabled": True, "cache_dir": str(tmp_path / "cache")}
        told = config(tmp_path, endpoint.api_base, rows=questions(6), generation__n=2, generation__cache=cache)
        some = told | {"evaluation_params": {"limit_samples": 2}}
        other = some | {"output": {"output_dir": str(tmp_path / "other")}, "evaluation_params": {"limit_samples": 3}}
        EvaluationPipeline(some).run()
        EvaluationPipeline(other).run()
        sent = len(endpoint.requests)
        before = files(tmp_path)
        found = plan(told)
        assert len(endpoint.requests) == sent
        assert files(tmp_path) == before
        assert (found.rows, found.rollouts, found.on_disk, found.cached) == (6, 12, 4, 2)
        assert (found.requests, found.answers_to_generate, found.to_score) == (3, 6, 8)
        done = EvaluationPipeline(told).run()
        assert len(endpoint.requests) == sent + found.requests
    assert done.counters.cached == found.cached
    assert plan(told).answers_to_generate == 0


def test_what_will_be_tried_again_is_counted_once(tmp_path: Path) -> None:
    def react(body: dict[str, Any], number: int) -> Reaction:
        if "1" in prompt_of(body):
            return complains(503, "full")
        return complains(400, "no") if "2" in prompt_of(body) else honest(body, number)

    with serving(react) as endpoint:
        told = config(tmp_path, endpoint.api_base, generation__api_params={"max_retries": 0})
        EvaluationPipeline(told).run()
    found = plan(told)
    assert (found.rollouts, found.answers_to_generate, found.to_score) == (4, 1, 1)
    assert plan(told, retry_failed=True).answers_to_generate == 2


def test_scoring_and_scoring_again_are_planned(tmp_path: Path) -> None:
    told = config(tmp_path, generation__n=2)
    EvaluationPipeline(told, phase="inference").run()
    assert (plan(told, phase="execution").to_score, plan(told, phase="inference").to_score) == (8, 0)
    EvaluationPipeline(told, phase="execution").run()
    assert plan(told, phase="execution").to_score == 0
    stricter = config(tmp_path, generation__n=2, reward__params={"strictness": 2})
    assert plan(stricter, rescore=True).to_score == 8
    assert plan(told, rescore=True).to_score == 8
    (tmp_path / "dataset.jsonl").unlink()
    assert plan({"reward": told["reward"], "rollouts_file": str(tmp_path / "run" / "rollouts.jsonl"),
                 "output": {"output_dir": str(tmp_path / "new")}}).to_score == 8  # fmt: skip


def test_answers_in_the_data_need_no_request(tmp_path: Path) -> None:
    rows = [row | {"assistant_response": "x"} for row in questions(3)]
    found = plan(config(tmp_path, rows=rows, generation__enabled=False))
    assert (found.rows, found.rollouts, found.requests, found.to_score) == (3, 3, 0, 3)


def test_a_plan_that_cannot_be_carried_out_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rollouts"):
        plan(config(tmp_path), phase="execution")
    EvaluationPipeline(config(tmp_path)).run()
    with pytest.raises(StorageError, match=r"generation\.temperature"):
        plan(config(tmp_path, generation__temperature=0.1))
    with pytest.raises(StorageError, match="`rescore`"):
        plan(config(tmp_path, reward__params={"strictness": 2}))
    with pytest.raises(ConfigError, match="model_name"):
        plan(config(tmp_path, generation__model_name=None, output__output_dir=str(tmp_path / "new")))


def test_an_agents_plan_says_that_its_cost_is_not_known_beforehand(tmp_path: Path) -> None:
    config = load_config(
        {
            "generation": {"model_name": "mock", "n": 3, "price": {"input": 1, "output": 1}},
            "agent": {"tools": ["tests.agent.worlds:double"], "max_turns": 7},
            "reward": {"function_path": "exact_match"},
            "output": {"output_dir": str(tmp_path / "run")},
        }
    )
    plan = EvaluationPipeline(config, samples=[{"id": "a", "prompt": "Double it.", "ground_truth": "4"}]).plan()
    assert (plan.cost, plan.most_turns, plan.requests) == (None, 7, 3)
    assert any("up to 7 requests" in remark for remark in plan.remarks)
