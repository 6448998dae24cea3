# SPDX-License-Identifier: Apache-2.0
"""JSON by schema: valid and whole is 1.0, the rest in proportion, and the reader cannot be led astray."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import MissingExtraError
from reward_kit.models import EvaluateResult, Message
from reward_kit.rewards.json_schema import json_schema_reward, json_schema_reward_with_llm_judge

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 10},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "home": {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}},
    },
}
WHOLE = {"name": "Ada", "age": 36, "tags": ["a"], "home": {"city": "Oslo"}}


def judge(answer: Any, schema: Any = SCHEMA, **options: Any) -> EvaluateResult:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return json_schema_reward([Message(role="assistant", content=text)], expected_schema=schema, **options)


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        {**WHOLE, "age": 36.0, "tags": []},
        f"Here you are:\n```json\n{json.dumps(WHOLE, indent=1)}\n```\nAnything else?",
        f"First a draft:\n```\n{{}}\n```\nthen:\n```\n{json.dumps(WHOLE)}\n```",
        f"<think>{{}}</think>\n{json.dumps(WHOLE)}",
        f"It is {json.dumps(WHOLE)}, I think.",
        "See [1] " * 1000 + json.dumps(WHOLE),
    ],
    ids=str,
)
def test_valid_and_whole(answer: Any) -> None:
    result = judge(answer)
    assert result.score == 1.0 and result.metrics["schema_valid"].is_score_valid


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ({"name": "Ada", "age": 36, "tags": ["a"]}, 3 / 5),  # age, name, tags[], tags, home: the city is not looked for
        ({**WHOLE, "extra": 1}, 6 / 7),
        ({**WHOLE, "age": "36"}, 5 / 7),
        ({**WHOLE, "age": True}, 5 / 7),
        ({**WHOLE, "age": -1}, 5 / 7),
        ({**WHOLE, "name": "A name too long"}, 5 / 7),
        ({**WHOLE, "tags": ["a", 1]}, 5 / 7),
        ({**WHOLE, "home": {"city": "Paris"}}, 5 / 7),
        ({}, 0.0),
        ([], 0.0),
        ("3", 0.0),
    ],
)
def test_in_proportion(answer: Any, score: float) -> None:
    result = judge(answer)
    if answer == {"name": "Ada", "age": 36, "tags": ["a"]}:
        assert 0.5 < result.score < 1.0 and result.metrics["schema_valid"].score == 1.0
    else:
        assert result.score == pytest.approx(score)


def test_all_or_nothing_is_validity() -> None:
    assert judge({"name": "Ada"}, all_or_nothing=True).score == 1.0
    assert judge({**WHOLE, "age": -1}, all_or_nothing=True).score == 0.0


def test_invalid_is_never_full_marks() -> None:
    for schema, answer in [
        ({"type": "object", "minProperties": 1}, {}),
        ({"not": {}}, {"a": 1}),
        ({"properties": {"a": {"const": 1}}}, {"a": 2}),
        ({"type": "array", "items": {"type": "integer"}}, ["x"]),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string", "pattern": "^b"}}}, {"a": "c"}),
    ]:
        assert judge(answer, schema).score < 1.0, schema


def test_references_are_followed_inside_the_schema_only() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"properties": {"b": {"type": "string"}}}}}
    assert judge({"a": {"b": "c"}}, schema).score == 1.0 and judge({"a": {}}, schema).score == 0.5
    for broken in ({"$ref": "http://localhost:1/schema"}, {"$ref": "#/$defs/none"}, {"type": "nonsense"}):
        assert not judge({"a": 1}, broken).is_score_valid
    circle = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}
    assert not judge({"a": 1}, circle).is_score_valid


@pytest.mark.parametrize(
    "answer", ["", "no JSON here", "{", "{'a': 1}", '{"a": NaN}', '{"a": 1, "a": 2}', "```json\n{\n```"]
)
def test_no_json_is_wrong(answer: str) -> None:
    result = judge(answer)
    assert result.score == 0.0 and result.is_score_valid and "error" in result.metrics


def test_no_schema_is_no_verdict() -> None:
    for schema in (None, "", "{", 5):
        assert not judge(WHOLE, schema).is_score_valid
    assert judge(WHOLE, json.dumps(SCHEMA)).score == 1.0
    reply = [Message(role="assistant", content=json.dumps(WHOLE))]
    assert json_schema_reward(reply, ground_truth=SCHEMA).score == 1.0
    assert json_schema_reward([], json_content=WHOLE, expected_schema=SCHEMA).score == 1.0
    assert json_schema_reward([], expected_schema=SCHEMA).metrics["error"].score == 0.0


def test_without_the_extra_only_the_outline_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("jsonschema"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"reward-kit\[schema\]"):
        judge(WHOLE)
    assert judge({**WHOLE, "age": -1}, validate=False).score == 1.0


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert 0.0 <= judge(text, validate=False).score <= 1.0


@pytest.mark.parametrize(
    "answer",
    ["[" * 5_000_000, '{"a":' * 800_000, "{" * 5_000_000, '["' * 2_500_000, "```\n" * 200_000,
     json.dumps([{"a": number} for number in range(20_000)]), "9" * 5_000_000, "[" + "1," * 50_000 + "1]"],
    ids=lambda answer: answer[:16],
)  # fmt: skip
def test_megabytes_of_malice(answer: str) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"properties": {"a": {"type": "integer"}}}}
    assert 0.0 <= judge(answer, schema).score <= 1.0


# ── with a judge ─────────────────────────────────────────────────────────────────────────────────────────────────────


def with_judge(*replies: str, **options: Any) -> EvaluateResult:
    mock = {"model_name": "mock", "mock": {"responses": list(replies)}, "cache": {"enabled": False}}
    given = {"expected_schema": SCHEMA, "expected_behavior": "Describe Ada.", "model": mock, **options}
    return json_schema_reward_with_llm_judge([Message(role="assistant", content=json.dumps(WHOLE))], **given)


def test_both_scores_are_weighted_and_shown() -> None:
    result = with_judge("VERDICT: 5")
    assert result.score == pytest.approx(0.7 + 0.3 * 0.5)
    assert {"schema_similarity", "schema_score", "llm_judge", "llm_score", "weights"} <= set(result.metrics)
    assert with_judge("VERDICT: 5", weights={"schema": 1, "llm": 3}).score == pytest.approx(0.25 + 0.75 * 0.5)


def test_a_judge_without_a_verdict_gives_none_and_one_without_a_question_is_not_asked() -> None:
    assert not with_judge("Fine, I guess.").is_score_valid
    assert with_judge("Fine, I guess.", expected_behavior=None).score == 1.0
    assert not with_judge("VERDICT: 5", weights={"schema": 0}).is_score_valid
