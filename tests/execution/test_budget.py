# SPDX-License-Identifier: Apache-2.0
"""`max_cost`: the run stops before it is exceeded, judges what was paid for, and goes on when it is raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reward_kit.errors import ConfigError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from tests.generation.loopback import Says, answer
from tests.loopback.endpoint import asked_twice, serving, text_for
from tests.loopback.runs import config, lines, questions, results

PRICE = {"input": 0.0, "output": 1000.0}
"""A thousandth for every token of an answer."""
TOKENS = 10


def react(body: dict[str, Any], _: int) -> Says:
    """Every answer takes as many tokens as it may."""
    n = body.get("n", 1)
    texts = [text_for(body, choice) for choice in range(n)]
    return answer(*texts, prompt_tokens=5, completion_tokens=n * body["max_tokens"])


def run(home: Path, api_base: str, max_cost: float, **settings: Any) -> RunResult:
    told = config(home, api_base, rows=questions(10), max_cost=max_cost, generation__price=PRICE,
                  generation__max_tokens=TOKENS, generation__n_mode="fanout", **settings)  # fmt: skip
    return EvaluationPipeline(told, phase="both").run()


def spent(home: Path) -> float:
    return sum(line["cost"] or 0 for line in lines(home / "run" / "rollouts.jsonl"))


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("reward", ["quick", "steady"])
def test_a_run_stops_before_its_limit_judges_what_it_has_and_goes_on(
    tmp_path: Path, concurrency: int, reward: str
) -> None:
    with serving(react) as endpoint:
        more: dict[str, Any] = {"generation__api_params": {"max_concurrent_requests": concurrency}, "reward": reward}
        first = run(tmp_path, endpoint.api_base, 0.045, **more)
        assert first.status == "stopped"
        assert first.reason is not None and "max_cost" in first.reason
        assert 0 < spent(tmp_path) <= 0.045
        assert first.judged == len(lines(tmp_path / "run" / "rollouts.jsonl")) == len(results(tmp_path)) >= 1
        again = run(tmp_path, endpoint.api_base, 0.045, **more)
        assert again.status == "stopped"
        assert spent(tmp_path) <= 0.045, "what earlier entries spent counts"
        last = run(tmp_path, endpoint.api_base, 1.0, **more)
        assert not asked_twice(endpoint.requests)
    assert (last.status, last.judged) == ("finished", 10)
    assert spent(tmp_path) == pytest.approx(0.1)
    assert last.summary["cost"] == pytest.approx(0.1)


@pytest.mark.parametrize("concurrency", [2, 8])
def test_what_is_set_apart_for_requests_on_their_way_is_waited_for(tmp_path: Path, concurrency: int) -> None:
    """Ten answers of a tenth of the tokens they might take: two at a time fit, and all of them in the end."""

    def brief(body: dict[str, Any], _: int) -> Says:
        return answer(text_for(body), prompt_tokens=5, completion_tokens=1)

    with serving(brief) as endpoint:
        more = {"generation__api_params": {"max_concurrent_requests": concurrency}}
        result = run(tmp_path, endpoint.api_base, 0.025, **more)
    assert (result.status, result.judged) == ("finished", 10)
    assert spent(tmp_path) == pytest.approx(0.01)


def test_the_last_request_that_fits_is_sent(tmp_path: Path) -> None:
    with serving(react) as endpoint:
        assert run(tmp_path, endpoint.api_base, 0.1 + 1e-9).status == "finished"


def test_what_was_generated_before_is_judged_although_nothing_is_left_to_spend(tmp_path: Path) -> None:
    with serving(react) as endpoint:
        run(tmp_path, endpoint.api_base, 0.065, generation__api_params={"max_concurrent_requests": 1})
        rollouts, results_ = (tmp_path / "run" / name for name in ("rollouts.jsonl", "results.jsonl"))
        generated = rollouts.read_bytes().splitlines(keepends=True)
        # As after a kill with answers out of order: s2 was in flight, the others were there, and one was judged.
        rollouts.write_bytes(b"".join(line for line in generated if b'"id":"s2"' not in line))
        results_.write_bytes(b"".join(results_.read_bytes().splitlines(keepends=True)[1:2]))
        result = run(tmp_path, endpoint.api_base, 0.055)
    assert result.status == "stopped"
    assert set(results(tmp_path)) == {(f"s{i}", 0) for i in (0, 1, 3, 4, 5)}


def test_growing_n_without_money_judges_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    with serving(react) as endpoint:
        run(tmp_path, endpoint.api_base, 0.1 + 1e-9, reward="ranking")
        before = results(tmp_path)
        result = run(tmp_path, endpoint.api_base, 0.1 + 1e-9, reward="ranking", generation__n=2)
    assert result.status == "stopped"
    assert {key: row["evaluation_score"] for key, row in results(tmp_path).items()} == {
        key: row["evaluation_score"] for key, row in before.items()
    }


def test_cached_answers_cost_nothing(tmp_path: Path) -> None:
    cache = {"enabled": True, "cache_dir": str(tmp_path / "cache")}
    with serving(react) as endpoint:
        run(tmp_path, endpoint.api_base, 1.0, generation__cache=cache)
        free = run(tmp_path, endpoint.api_base, 0.0, generation__cache=cache, output__output_dir=str(tmp_path / "free"))
    assert (free.status, free.judged, free.summary["cost"]) == ("finished", 10, 0.0)


def test_a_limit_on_an_unknown_price_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with serving(react) as endpoint:
        with pytest.raises(ConfigError, match=r"`generation\.price`"):
            EvaluationPipeline(config(tmp_path, endpoint.api_base, max_cost=1.0)).run()
        assert not endpoint.requests


# ── a judge ──────────────────────────────────────────────────────────────────────────────────────────────────────────

JUDGE_REWARD = "reward_kit.rewards.judge:judge_reward"


def react_and_judge(body: dict[str, Any], number: int) -> Says:
    if body["model"] != "judge":
        return react(body, number)
    return answer("VERDICT: 7", prompt_tokens=5, completion_tokens=TOKENS)


def judged_run(home: Path, api_base: str, max_cost: float, **settings: Any) -> RunResult:
    judge = {"model_name": "judge", "api_base": api_base, "price": PRICE, "max_tokens": TOKENS, "temperature": 0.0}
    return run(home, api_base, max_cost, reward__function_path=JUDGE_REWARD, reward__concurrency=4,
               judge={**judge, "cache": {"enabled": False}}, **settings)  # fmt: skip


def asked_of_the_judge(requests: list[dict[str, Any]]) -> list[Any]:
    return [request["messages"] for request in requests if request["model"] == "judge"]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_judge_spends_of_the_same_money_and_what_it_did_not_judge_is_owed(tmp_path: Path, concurrency: int) -> None:
    width: dict[str, Any] = {"generation__api_params": {"max_concurrent_requests": concurrency}}
    with serving(react_and_judge) as endpoint:
        first = judged_run(tmp_path, endpoint.api_base, 0.085, **width)
        asked = len(asked_of_the_judge(endpoint.requests))
        assert (first.status, first.failed) == ("stopped", 0)
        assert "max_cost" in (first.reason or "")
        assert spent(tmp_path) + 0.01 * asked <= 0.085
        assert len(results(tmp_path)) == first.judged == asked
        assert judged_run(tmp_path, endpoint.api_base, 0.085, **width).status == "stopped"
        assert len(endpoint.requests) * 0.01 <= 0.085, "what earlier entries paid the judge counts"
        last = judged_run(tmp_path, endpoint.api_base, 1.0, **width)
        judged = asked_of_the_judge(endpoint.requests)
    assert (last.status, len(results(tmp_path)), last.failed) == ("finished", 10, 0)
    assert len(judged) == len({str(messages) for messages in judged}) == 10, "nobody was judged twice"


def test_a_judge_of_the_second_phase_is_bounded_too(tmp_path: Path) -> None:
    with serving(react_and_judge) as endpoint:
        told = config(tmp_path, endpoint.api_base, rows=questions(10), generation__max_tokens=TOKENS)
        EvaluationPipeline(told, phase="inference").run()
        prices: dict[str, Any] = {"model_name": "judge", "api_base": endpoint.api_base, "max_tokens": TOKENS}
        settings: dict[str, Any] = {
            "max_cost": 0.035,
            "reward__function_path": JUDGE_REWARD,
            "generation__max_tokens": TOKENS,
        }
        judged = config(tmp_path, endpoint.api_base, judge={**prices, "price": PRICE}, **settings)
        result = EvaluationPipeline(judged, phase="execution").run()
        assert (result.status, result.judged, len(asked_of_the_judge(endpoint.requests))) == ("stopped", 3, 3)
        with pytest.raises(ConfigError, match=r"`judge\.price`"):
            unpriced = config(tmp_path, endpoint.api_base, judge=prices, **settings)
            EvaluationPipeline(unpriced, phase="execution", rescore=True).run()
