# SPDX-License-Identifier: Apache-2.0
"""What trainers say over HTTP, in the form that each documents: request in, verdicts, reply out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_kit.errors import RewardError, SandboxError
from reward_kit.models import EvaluateResult, Failure, Message, MetricResult, Rollout, Verdict
from reward_kit.serving.dialect import BadRequest, Dialect, Exchange, Incoming, Reply
from reward_kit.serving.dialects import DIALECTS, load_dialect

TRAINERS = [name for name in DIALECTS if name != "generic"]
GOOD = EvaluateResult(
    score=0.5, reason="half", metrics={"length": MetricResult(score=0.25, reason="short", is_score_valid=True)}
)
BROKEN = Failure.of(RewardError("'f' raised KeyError: 'x'"), "score")
PASSING = Failure.of(SandboxError("no sandbox"), "score")


def exchange(dialect: str, path: str, body: Any) -> Exchange:
    route = next(route for route in load_dialect(dialect).routes if route.path == path)
    return route.read(Incoming(body, {}))


def reply(dialect: str, path: str, body: Any, *verdicts: Verdict) -> Reply:
    told = exchange(dialect, path, body).reply(verdicts)
    json.loads(json.dumps(told.body, allow_nan=False))
    return told


def asked(dialect: str, path: str, body: Any) -> Rollout:
    (one,) = exchange(dialect, path, body).asked
    assert isinstance(one, Rollout)
    return one


def turns(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in pairs]


TWO_TURNS = turns(("user", "2+2?"), ("assistant", "4"))

OPENRLHF = {"query": ["<s>2+2?4</s>"], "prompts": ["2+2?"], "labels": ["4"]}
SLIME = {"prompt": "2+2?", "response": "4", "label": "4"}
VERL = {
    "data_source": "sums", "solution_str": "4", "ground_truth": "4",
    "extra_info": {"prompt": "2+2?", "index": 7, "num_turns": 2},
}  # fmt: skip
NEMO: dict[str, Any] = {
    "responses_create_params": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]}]},
    "response": {
        "id": "resp_1", "object": "response",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]},
        ],
    },
    "ground_truth": "4",
    "difficulty": 3,
}  # fmt: skip
FIREWORKS = {"messages": TWO_TURNS, "ground_truth": "4", "tools": [{"type": "function"}], "kwargs": {"level": 2}}
AZURE: dict[str, Any] = {
    "schema_version": "0.0.1",
    "data": {
        "item": {"query": "2+2?", "ground_truth": "4", "topic": "sums"},
        "sample": {"output_text": "4", "output_tools": []},
    },
}

REQUESTS: dict[str, tuple[str, Any]] = {
    "openrlhf": ("/openrlhf", OPENRLHF),
    "slime": ("/slime", SLIME),
    "nemo-gym": ("/verify", NEMO),
    "verl": ("/verl", VERL),
    "fireworks": ("/fireworks/evaluate", FIREWORKS),
    "azure": ("/azure", AZURE),
}


@pytest.mark.parametrize(
    ("dialect", "columns"),
    [
        ("openrlhf", {"prompt": "2+2?"}),
        ("slime", {"prompt": "2+2?", "label": "4"}),
        ("nemo-gym", {"difficulty": 3}),
        ("verl", {"prompt": "2+2?", "data_source": "sums", "index": 7, "num_turns": 2}),
        ("fireworks", {"level": 2}),
        ("azure", {"query": "2+2?", "topic": "sums"}),
    ],
)
def test_every_trainer_asks_the_same_question(dialect: str, columns: dict[str, Any]) -> None:
    one = asked(dialect, *REQUESTS[dialect])
    assert [turn.as_request() for turn in one.messages] == TWO_TURNS
    assert (one.sample.ground_truth, one.sample.columns) == ("4", columns)
    assert one.sample.tools == ([{"type": "function"}] if dialect == "fireworks" else None)


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        ("openrlhf", {"rewards": 0.5, "scores": 0.5, "extra_logs": {"length": 0.25}}),
        ("slime", 0.5),
        ("nemo-gym", {**NEMO, "reward": 0.5, "reward_components": {"length": 0.25}, "reason": "half"}),
        ("verl", {"score": 0.5, "length": 0.25}),
    ],
)
def test_a_verdict_in_each_dialect(dialect: str, said: Any) -> None:
    assert reply(dialect, *REQUESTS[dialect], GOOD) == Reply(200, said)


def test_a_verdict_for_fireworks_and_for_azure() -> None:
    body = reply("fireworks", *REQUESTS["fireworks"], GOOD).body
    assert EvaluateResult.model_validate(body) == GOOD
    told = reply("azure", *REQUESTS["azure"], GOOD).body
    assert told == {
        "schema_version": "0.0.1", "status": "Completed", "score": 0.5, "reason": "half", "threshold": 1.0,
        "passed": False, "properties": {"length": 0.25},
    }  # fmt: skip
    easy = {**AZURE, "initialization_parameters": {"threshold": 0.5}}
    assert reply("azure", "/azure", easy, GOOD).body["passed"] is True


# ── a failure is never a score ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", ["openrlhf", "slime", "nemo-gym", "verl"])
def test_where_a_dialect_knows_only_numbers_a_failure_is_a_5xx(dialect: str) -> None:
    path, body = REQUESTS[dialect]
    assert reply(dialect, path, body, BROKEN).status == 500
    later = reply(dialect, path, body, PASSING)
    assert later.status == 503 and later.headers["retry-after"]
    assert "reward" not in later.body and "score" not in later.body


def test_where_a_dialect_has_a_word_for_it_a_failure_is_that() -> None:
    fireworks = reply("fireworks", *REQUESTS["fireworks"], BROKEN)
    assert fireworks.status == 200 and fireworks.body["is_score_valid"] is False
    assert fireworks.body["error"] == BROKEN.message
    assert EvaluateResult.model_validate(fireworks.body).is_score_valid is False
    assert reply("fireworks", *REQUESTS["fireworks"], PASSING).status == 503
    azure = reply("azure", *REQUESTS["azure"], BROKEN)
    assert azure.status == 200 and azure.body["status"] == "Error" and "score" not in azure.body


def test_one_failure_among_several_fails_the_request() -> None:
    body = {"query": ["a", "b"], "prompts": ["", ""], "labels": [None, None]}
    assert reply("openrlhf", "/openrlhf", body, GOOD, BROKEN).status == 500
    assert reply("openrlhf", "/openrlhf", body, GOOD, GOOD).body["rewards"] == [0.5, 0.5]


# ── requests of another shape ────────────────────────────────────────────────────────────────────────────────────────

ODD: list[Any] = [None, [], 3, "text", {}, {"unknown": 1}, [{"messages": TWO_TURNS}]]


@pytest.mark.parametrize("dialect", TRAINERS)
@pytest.mark.parametrize("body", ODD, ids=str)
def test_a_request_of_another_shape_is_refused_with_a_sentence(dialect: str, body: Any) -> None:
    with pytest.raises(BadRequest, match=r"\.$") as caught:
        exchange(dialect, REQUESTS[dialect][0], body)
    assert 400 <= caught.value.status < 500


@pytest.mark.parametrize("dialect", TRAINERS)
def test_no_value_in_a_known_field_crashes_a_dialect(dialect: str) -> None:
    path, body = REQUESTS[dialect]
    values: list[Any] = [None, 1, -0.5, True, "", "x", [], [None], [[]], {}, {"a": []}, [{"role": 3}], TWO_TURNS[:1]]
    for field in body:
        for value in values:
            try:
                questions = exchange(dialect, path, {**body, field: value})
            except BadRequest:
                continue
            for question in questions.asked:
                assert isinstance(question, Failure) or question.messages
            questions.reply([GOOD] * len(questions.asked))


# ── odds and ends ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_conversations_of_the_responses_api_become_turns() -> None:
    body = {
        "responses_create_params": {"input": "Weather?", "instructions": "Be brief.", "tools": [{"name": "weather"}]},
        "response": {
            "output": [
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "rain"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
            ]
        },
    }
    one = asked("nemo-gym", "/verify", body)
    weather = {"name": "weather", "arguments": '{"city": "Bern"}'}
    assert [turn.role for turn in one.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert one.messages[2].as_request()["tool_calls"][0]["function"] == weather
    assert one.sample.tools == [{"name": "weather"}]
    silent = {**body, "response": {"output": []}}
    assert asked("nemo-gym", "/verify", silent).messages[-1] == Message(role="assistant", content="")


def test_a_session_of_nemo_gym_keeps_nothing_and_its_rewards_have_a_mean() -> None:
    assert reply("nemo-gym", "/seed_session", {"any": 1}) == Reply(200, {})
    told = reply("nemo-gym", "/aggregate_metrics", {"verify_responses": [{"reward": 1.0}, {"reward": 0.0}, {}]})
    assert told.body["key_metrics"] == {"mean/reward": 0.5}


def test_slime_tells_metrics_to_those_who_ask() -> None:
    assert reply("slime", "/slime/metrics", SLIME, GOOD).body == {"length": 0.25, "score": 0.5, "reason": "half"}


def test_no_two_dialects_have_a_path_in_common() -> None:
    dialects: list[Dialect] = [load_dialect(name) for name in DIALECTS]
    paths = [(route.method, route.path) for dialect in dialects for route in dialect.routes]
    assert len(paths) == len(set(paths))
    assert [dialect.name for dialect in dialects] == list(DIALECTS)
