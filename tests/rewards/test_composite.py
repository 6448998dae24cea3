# SPDX-License-Identifier: Apache-2.0
"""Several rewards as one: sums, gates, the least, the first that decides; from Python and from a config."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import ConfigError, RewardError
from reward_kit.evaluation import evaluate
from reward_kit.models import EvaluateResult, Message, MetricResult
from reward_kit.reward_call import RewardCall
from reward_kit.rewards.composite import composite, composite_reward
from reward_kit.typed_interface import reward_function
from reward_kit.utils.source_digest import source_digest

ANSWER = [Message(role="user", content="?"), Message(role="assistant", content="four")]
calls: list[str] = []


def always(score: float, name: str = "always") -> Any:
    def reward(messages: list[Message], **kwargs: Any) -> float:
        calls.append(name)
        return score

    reward.__name__ = name
    return reward


def undecided(messages: list[Message], **kwargs: Any) -> EvaluateResult:
    return EvaluateResult(score=0.0, is_score_valid=False, reason="who knows")


def raises(messages: list[Message], **kwargs: Any) -> float:
    raise ZeroDivisionError("oops")


def right(messages: list[Message], ground_truth: Any, **kwargs: Any) -> EvaluateResult:
    ok = messages[-1].text == ground_truth
    return EvaluateResult(
        score=float(ok), reason="compared", metrics={"same": MetricResult(score=float(ok), reason="")}
    )


async def later(messages: list[Message], bonus: float = 0.5, **kwargs: Any) -> float:
    await asyncio.sleep(0)
    return bonus


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()


def score(parts: Any, **options: Any) -> float:
    return composite_reward(ANSWER, "four", parts=parts, **options).score


def test_a_weighted_sum_is_over_the_sum_of_the_weights() -> None:
    parts = [{"reward": always(1.0, "a"), "weight": 3}, {"reward": always(0.2, "b")}]
    assert score(parts) == pytest.approx((3 + 0.2) / 4)
    penalty = [{"reward": always(1.0, "a")}, {"reward": always(0.5, "b"), "weight": -1}]
    assert score(penalty) == pytest.approx(0.5)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 10)), min_size=1, max_size=5))
def test_a_sum_of_scores_in_a_range_stays_in_it(parts: list[tuple[float, float]]) -> None:
    made = {str(at): {"reward": always(value), "weight": weight} for at, (value, weight) in enumerate(parts)}
    low, high = min(value for value, _ in parts), max(value for value, _ in parts)
    assert low - 1e-9 <= score(made) <= high + 1e-9
    assert score(made, how="min") == low


def test_every_part_is_shown_with_its_own_metrics() -> None:
    result = composite_reward(ANSWER, "five", parts={"answer": right, "style": always(0.5)})
    assert result.metrics["answer"].score == 0.0 and "compared" in result.metrics["answer"].reason
    assert result.metrics["answer.same"].score == 0.0 and result.metrics["style"].score == 0.5
    assert set(result.metrics) == {"answer", "answer.same", "style"}


def test_a_gate_that_is_shut_ends_it() -> None:
    parts = {"b": always(1.0, "b"), "gate": {"reward": always(0.4, "gate"), "gate": True}}
    result = composite_reward(ANSWER, None, parts=parts)
    assert result.score == 0.0 and calls == ["gate"] and result.metrics["b"].reason == "not run"
    parts["gate"]["threshold"] = 0.4
    assert composite_reward(ANSWER, None, parts=parts).score == 1.0


def test_the_first_that_decides_has_the_last_word() -> None:
    order = {"exact": {"reward": always(0.0, "exact"), "decides": "pass"}, "other": always(0.6, "other")}
    assert score(order, how="first_decisive") == 0.6 and calls == ["exact", "other"]
    calls.clear()
    order["exact"]["reward"] = always(1.0, "exact")
    assert score(order, how="first_decisive") == 1.0 and calls == ["exact"]
    assert score([undecided, always(0.3)], how="first_decisive") == 0.3
    with pytest.raises(RewardError, match="undecided"):
        score([{"reward": always(1.0), "decides": "fail"}], how="first_decisive")


@pytest.mark.parametrize("how", ["weighted_sum", "min"])
@pytest.mark.parametrize("part", [undecided, raises])
def test_a_part_without_a_verdict_leaves_the_whole_without_one(how: Any, part: Any) -> None:
    with pytest.raises(RewardError, match="no verdict"):
        score([always(1.0), part], how=how)
    with pytest.raises(RewardError, match="no verdict"):
        score([always(1.0), {"reward": part, "gate": True}], how=how)


async def test_it_is_asynchronous_if_a_part_is() -> None:
    reward = composite({"a": always(1.0), "later": {"reward": later, "params": {"bonus": 0.0}}})
    assert (await reward(ANSWER)).score == 0.5
    assert composite_reward(ANSWER, parts=[later]).score == 0.5, "called by itself it waits"
    gated = composite({"gate": {"reward": later, "gate": True}, "b": always(1.0, "b")})
    assert (await gated(ANSWER)).score == 0.0 and "b" not in calls
    first = composite([undecided, later], how="first_decisive")
    assert (await first(ANSWER)).score == 0.5


def test_parts_by_name_and_path() -> None:
    answer = [Message(role="assistant", content="It is \\boxed{4}.")]
    for name in ("math_reward", "math", "reward_kit.rewards.math:math_reward"):
        assert composite_reward(answer, "4", parts={"m": name}).score == 1.0


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "has parts"),
        (None, "has parts"),
        ("math_reward", "has parts"),
        (["no_such_reward"], "no reward of that name"),
        (["no.such:path"], "cannot be loaded"),
        ([5], "is not a reward"),
        ([{"weight": 1}], "'reward'"),
        ([{"reward": later, "wait": 1}], "'wait'"),
        ([later, later], "called 'later'"),
        ([{"reward": later, "gate": True}], "weighs anything|weight above zero"),
        (["majority_vote_reward"], "at once"),
    ],
)
def test_parts_that_make_no_sense(parts: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        composite(parts)
    with pytest.raises(ConfigError, match="first_decisive"):
        composite([later], how="max")  # type: ignore[arg-type]  # what a person may write


def test_the_last_message_must_be_the_assistants() -> None:
    assert composite_reward([Message(role="user")], parts=[always(1.0)]).metrics["error"].score == 0.0


async def asks(messages: list[Message], judge: Any, tools: Any, colour: str, **kwargs: Any) -> float:
    assert tools == [{"name": "t"}] and colour == "red" and "sandbox" not in kwargs
    (reply,) = await judge.ask("Well?")
    return float(reply == "yes")


def test_a_run_hands_over_what_the_parts_ask_for(tmp_path: Path) -> None:
    row = {
        "messages": [{"role": "user", "content": "?"}],
        "assistant_response": "x",
        "colour": "red",
        "tools": [{"name": "t"}],
    }
    mock = {"model_name": "mock", "mock": {"responses": ["yes"]}, "cache": {"enabled": False}}
    whole = composite({"asks": asks, "always": always(0.0)})
    assert evaluate([row], whole, output_dir=tmp_path, judge=mock).mean_score == 0.5


def test_from_a_config(tmp_path: Path) -> None:
    rows = [{"user_query": "2 + 2?", "assistant_response": "\\boxed{4}", "ground_truth_for_eval": "4"}]
    parts = {"answer": {"reward": "math_reward", "weight": 3}, "judge": {"reward": "judge_reward"}}
    mock = {"model_name": "mock", "mock": {"responses": ["VERDICT: 0"]}, "cache": {"enabled": False}}
    path = "reward_kit.rewards.composite:composite_reward"
    result = evaluate(rows, path, params={"parts": parts}, output_dir=tmp_path / "async", judge=mock)
    assert result.mean_score == 0.75
    alone = evaluate(rows, path, params={"parts": ["math_reward"]}, output_dir=tmp_path / "workers")
    assert alone.mean_score == 1.0
    with pytest.raises(ConfigError, match="has no param 'rubric'"):
        evaluate(rows, path, params={"parts": ["math_reward"], "rubric": "x"}, output_dir=tmp_path / "x")
    with pytest.raises(ConfigError, match="needs `parts`"):
        evaluate(rows, path, output_dir=tmp_path / "y")


def test_what_it_is_made_of_is_part_of_what_it_is() -> None:
    def digest(*parts: Any, **options: Any) -> str:
        return source_digest(composite(list(parts), **options))

    weighed = {"reward": later, "weight": 2}
    assert digest(later) == digest(later)
    assert len({digest(later), digest(right), digest(weighed), digest(later, how="min"), digest(later, right)}) == 5


def test_a_composite_is_a_part_like_any_other_and_crosses_into_workers() -> None:
    inner = composite([always(1.0, "a"), always(0.0, "b")])
    assert score({"inner": inner, "one": always(1.0)}) == 0.75
    call = RewardCall("reward_kit.rewards.composite:composite_reward", {"parts": ["math_reward"]})
    kind, arguments = call.__reduce__()
    assert kind(*arguments).name == call.name == "composite_reward" and not call.is_async


@reward_function
def decorated(messages: list[Message], **kwargs: Any) -> float:
    return 1.0


def test_its_time_is_that_of_its_parts() -> None:
    assert RewardCall(composite([decorated, "judge_reward"])).timeout == 660
