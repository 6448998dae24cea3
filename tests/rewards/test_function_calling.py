# SPDX-License-Identifier: Apache-2.0
"""Tool-call rewards: right calls score 1.0, others 0.0, and what cannot be judged gets no verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_kit.evaluation import evaluate
from reward_kit.models import ChatCompletionMessageToolCall, EvaluateResult, FunctionCall, Message
from reward_kit.rewards import function_calling
from reward_kit.rewards.function_calling import (
    calculate_jaccard_similarity,
    compare_tool_calls,
    exact_tool_match_reward,
    extract_schema_properties,
    match_function_call,
    normalize_schema,
    parse_tool_calls,
    valid_tool_call_reward,
)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "book",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "enum": ["Oslo", "Rome"]},
                    "nights": {"type": "integer", "minimum": 1},
                    "guests": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                },
                "required": ["city"],
            },
        },
    }
]


def calling(*calls: tuple[str, dict[str, Any]]) -> list[Message]:
    made = [
        ChatCompletionMessageToolCall(function=FunctionCall(name=name, arguments=json.dumps(arguments)))
        for name, arguments in calls
    ]
    return [Message(role="user", content="?"), Message(role="assistant", content=None, tool_calls=made or None)]


def saying(text: str) -> list[Message]:
    return [Message(role="assistant", content=text)]


def test_the_order_of_the_calls_counts_unless_the_reward_is_told_otherwise() -> None:
    truth = [{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]
    assert exact_tool_match_reward(calling(("f", {"x": 1}), ("g", {})), truth).score == 1.0
    assert exact_tool_match_reward(calling(("g", {}), ("f", {"x": 1})), truth).score == 0.0
    result = exact_tool_match_reward(calling(("g", {}), ("f", {"x": 1.0})), truth, ordered=False)
    assert result.score == 1.0 and result.is_score_valid
    assert {name: metric.score for name, metric in result.metrics.items()} == {
        "function_name_match": 1.0,
        "arguments_match": 1.0,
    }


def test_partly_right_scores_nothing_and_shows_how_much() -> None:
    truth = [{"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}]
    result = exact_tool_match_reward(calling(("f", {"x": 2}), ("g", {})), truth)
    assert result.score == 0.0 and "'x' of 'f' is 2" in str(result.reason)
    assert result.metrics["function_name_match"].score == 1.0 and result.metrics["arguments_match"].score == 0.5


@pytest.mark.parametrize(
    "truth",
    [
        None,
        "",
        {},
        {"function": "f"},
        {"tool_calls": None},
        {"tool_calls": {"name": "f"}},
        {"expected": [{"name": "f", "arguments": {}}]},
        [{"name": "f", "arguments": "{broken"}],
        [{"f": {"x": 1}}],
        42,
    ],
)
def test_a_ground_truth_that_cannot_be_read_is_never_taken_for_no_call(truth: Any) -> None:
    """The fault of many: an answer without a call would get full marks for a broken dataset."""
    for answer in (saying("I will not call anything."), calling(("f", {}))):
        result = exact_tool_match_reward(answer, truth)
        assert not result.is_score_valid and "[] if none is expected" in str(result.reason)


def test_a_name_of_a_megabyte_does_not_become_a_reason_of_one() -> None:
    name = "f" * 1_000_000
    for messages in (calling((name, {})), saying(f"{name}(x=y)"), calling(("f", {name: 1}))):
        for result in (
            exact_tool_match_reward(messages, ["f()"]),
            valid_tool_call_reward(messages, tools=[{"name": "f"}]),
        ):
            assert result.score == 0.0 and len(result.model_dump_json()) < 5_000


def test_no_call_expected() -> None:
    assert exact_tool_match_reward(saying("None of the tools fits."), []).score == 1.0
    assert exact_tool_match_reward(calling(("f", {})), []).score == 0.0
    assert exact_tool_match_reward(saying("<tool_call>{broken</tool_call>"), []).score == 0.0, "an attempt all the same"


def test_the_last_message_must_be_the_assistants() -> None:
    for messages in ([], [Message(role="user", content="f(x=1)")]):
        for reward in (exact_tool_match_reward, valid_tool_call_reward):
            result = reward(messages, ground_truth=["f(x=1)"], tools=TOOLS)
            assert result.score == 0.0 and "error" in result.metrics


def test_rules() -> None:
    tools = [{"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "string"}}, "required": ["x"]}}]
    truth = [{"f": {"x": ["x2"]}}]
    scores = {
        rules: [
            exact_tool_match_reward(calling(("f", {"x": text})), truth, tools=tools, rules=rules).score
            for text in ("x2", "X2", "x^2")
        ]
        for rules in ("strict", "lenient", "bfcl")
    }
    assert scores == {"strict": [1.0, 0.0, 0.0], "lenient": [1.0, 1.0, 0.0], "bfcl": [1.0, 1.0, 1.0]}


def test_bfcl_rules_need_the_declared_types() -> None:
    result = exact_tool_match_reward(calling(("f", {"x": "a"})), [{"f": {"x": ["a"]}}], rules="bfcl")
    assert not result.is_score_valid and "not among the tools" in str(result.reason)


def test_valid_calls() -> None:
    def judged(**arguments: Any) -> EvaluateResult:
        return valid_tool_call_reward(calling(("book", arguments)), tools=TOOLS)

    assert judged(city="Oslo").score == judged(city="Rome", nights=2, guests=["a", "b"]).score == 1.0
    wrong_ones: list[dict[str, Any]] = [
        {},
        {"city": "Paris"},
        {"city": "Oslo", "nights": 0},
        {"city": "Oslo", "nights": "2"},
        {"city": "Oslo", "nights": True},
        {"city": "Oslo", "stars": 5},
        {"city": "Oslo", "guests": ["a", "a"]},
    ]
    for wrong in wrong_ones:
        assert judged(**wrong).score == 0.0, wrong
    other = valid_tool_call_reward(calling(("cook", {})), tools=TOOLS)
    assert other.score == 0.0 and other.metrics["function_name_match"].score == 0.0
    assert valid_tool_call_reward(saying("No."), tools=TOOLS).score == 0.0
    assert valid_tool_call_reward(saying("No."), tools=TOOLS, call_required=False).score == 1.0
    assert not valid_tool_call_reward(saying("No.")).is_score_valid


def test_many_items_are_told_apart_in_one_pass() -> None:
    guests = [{"n": str(number)} for number in range(20_000)]
    tools = [{"name": "f", "parameters": {"properties": {"x": {"type": "array", "uniqueItems": True}}}}]
    assert valid_tool_call_reward(calling(("f", {"x": guests})), tools=tools).score == 1.0
    assert valid_tool_call_reward(calling(("f", {"x": [*guests, guests[0]]})), tools=tools).score == 0.0


def test_a_schema_that_is_none_or_leads_elsewhere_gives_no_verdict() -> None:
    for parameters in ({"type": "object", "properties": {"x": {"$ref": "http://localhost:1/x"}}}, {"properties": 5}):
        result = valid_tool_call_reward(calling(("f", {"x": 1})), tools=[{"name": "f", "parameters": parameters}])
        assert not result.is_score_valid


@pytest.mark.parametrize("made", [1, 2, 4_000])
def test_many_calls_cost_in_proportion(made: int) -> None:
    truth = [{"name": "f", "arguments": {"x": number}} for number in range(20)]
    calls = [("f", {"x": number % 20}) for number in range(made)]
    result = exact_tool_match_reward(calling(*calls), truth)
    assert result.score == 0.0 and result.metrics["arguments_match"].score == pytest.approx(
        2 * min(made, 20) / (20 + made)
    )


def test_in_a_run_tools_come_from_the_sample(tmp_path: Any) -> None:
    row = {
        "messages": [{"role": "user", "content": "?"}],
        "assistant_response": "[f(1)]",
        "ground_truth": [{"name": "f", "arguments": {"x": 1}}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {}}}}}],
    }
    path = "reward_kit.rewards.function_calling:exact_tool_match_reward"
    assert evaluate([row], path, output_dir=tmp_path).mean_score == 1.0


# ── inherited helpers ────────────────────────────────────────────────────────────────────────────────────────────────


def test_parse_tool_calls_gives_nothing_for_what_cannot_be_read() -> None:
    assert parse_tool_calls("<tool_call>{</tool_call>") == [] == parse_tool_calls("hello")
    assert parse_tool_calls("f(x=1)") == [{"name": "f", "arguments": {"x": 1}}]


def test_compare_tool_calls() -> None:
    f, g = {"name": "f", "arguments": {"x": 1}}, {"name": "g", "arguments": {}}
    assert compare_tool_calls([f, g], [g, f]) and compare_tool_calls([], [])
    assert not compare_tool_calls([f], [f, f]) and not compare_tool_calls([f, f], [f, g])
    assert not compare_tool_calls([{"nonsense": 1}], [f])
    with pytest.raises(ValueError, match="no name"):
        compare_tool_calls([f], [{"nonsense": 1}])


def test_match_function_call() -> None:
    schema = {"name": "f", "arguments": {"x": {"type": "number"}, "y": {"type": "string"}}}

    def score(strictness: Any, **arguments: Any) -> float:
        return match_function_call([], "f", arguments, schema, strictness).metrics["arguments_match"].score

    assert score("exact", x=1, y="a") == 1.0 and score("exact", x=1) == 0.0 == score("exact", x=1, y="a", z=1)
    assert score("partial", x=1) == 1.0 and score("partial", x="1") == 0.0 == score("partial")
    assert (
        score("flexible", x=1, y="a", z=1) == 1.0 == score("permissive", x=1, y="a") and score("flexible", x=1) == 0.0
    )
    assert score("exact", x=True, y="a") == 0.0, "a boolean is no number"
    assert match_function_call([], "g", {"x": 1, "y": "a"}, schema).score == 0.5
    with pytest.raises(ValueError, match="Invalid argument_match_strictness"):
        score("loose", x=1)


def test_schema_helpers() -> None:
    schema = {
        "properties": {"a": {"type": "object", "properties": {"b": {"type": ["string", "null"]}}}, "c": {}},
        "patternProperties": {"^x": {"type": "number"}},
    }
    assert extract_schema_properties(schema) == {
        ("a", "object"), ("a.b", "string|null"), ("c", "any"), ("[^x]", "number")
    }  # fmt: skip
    assert normalize_schema(json.dumps(schema)) == schema == normalize_schema(schema) and normalize_schema("[1]") == {}
    assert calculate_jaccard_similarity(set(), set()) == 1.0 and calculate_jaccard_similarity({1}, set()) == 0.0


@pytest.mark.parametrize("name", ["schema_jaccard_reward", "llm_judge_reward", "composite_function_call_reward"])
def test_old_names_say_that_they_are_old(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="exact_tool_match_reward"):
        result = vars(function_calling)[name](calling(("f", {})), ground_truth=["f()"], expected_schema={})
    assert result.score == 1.0
