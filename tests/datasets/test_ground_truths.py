# SPDX-License-Identifier: Apache-2.0
"""What a chat row is verified against: from the right place for each kind of problem."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_kit.datasets.ground_truths import with_ground_truth
from reward_kit.datasets.rows import BadRow
from tests.loopback.experiments import TOOL, chat_row, code_row, math_row, tool_row


def turn(role: str, content: str | None = "hello", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def row(*turns: dict[str, Any], metadata: Any = "{}", **columns: Any) -> dict[str, Any]:
    return chat_row(0, "x", list(turns), metadata, **columns)


def test_mathematics_is_verified_against_the_expected_answer_or_the_box_of_the_solution() -> None:
    in_metadata, in_solution = with_ground_truth(math_row(1), "math"), with_ground_truth(math_row(2), "math")
    assert (in_metadata["ground_truth"], in_solution["ground_truth"]) == ("2", "3")
    assert in_solution["messages"] == [{"role": "user", "content": "What is 2 + 1?"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1}, no: \boxed{ 2 }", "2"),
        (r"<think>\boxed{1}</think>\boxed{2}", "2"),
        (r"<think>\boxed{1}</think>It is 1.", None),
        (r"\boxed{1", None),
        ("It is 7.", None),
    ],
)
def test_the_last_box_outside_the_reasoning_counts(text: str, expected: str | None) -> None:
    given = row(turn("user"), turn("assistant", text))
    if expected is None:
        with pytest.raises(BadRow, match="no ground truth to verify an answer with"):
            with_ground_truth(given, "math")
    else:
        assert with_ground_truth(given, "math")["ground_truth"] == expected


def test_code_is_verified_by_test_cases_in_one_shape() -> None:
    expected = [{"input": "3\n", "expected_output": "4\n"}]
    assert with_ground_truth(code_row(3), "code")["ground_truth"] == expected
    for tests in ([{"input": "3\n", "output": "4\n"}], json.dumps(expected), {"inputs": ["3\n"], "outputs": ["4\n"]}):
        found = with_ground_truth(row(turn("user"), metadata={"test_cases": tests}), "code")
        assert found["ground_truth"] == expected
        assert with_ground_truth(row(turn("user"), ground_truth=tests), "code")["ground_truth"] == expected
    named = json.dumps({"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]})
    assert with_ground_truth(row(turn("user"), input_output=named), "code")["function_to_call"] == "add"
    assert with_ground_truth(row(turn("user"), ground_truth="42\n"), "code")["ground_truth"] == "42\n"


def test_a_solution_in_code_is_no_output_to_compare_with() -> None:
    tests = [{"input": "3\n", "expected_output": "4\n"}]
    program = "print(int(input()) + 1)"
    for columns in ({"solution": program}, {"answer": program}):
        assert with_ground_truth(row(turn("user"), tests=tests, **columns), "code")["ground_truth"] == tests
        with pytest.raises(BadRow, match="no ground truth to verify an answer with"):
            with_ground_truth(row(turn("user"), **columns), "code")


def test_that_no_call_is_expected_can_be_said() -> None:
    assert with_ground_truth(row(turn("user"), ground_truth=[]), "tool_calling")["ground_truth"] == []


def test_tool_calls_are_verified_against_the_first_ones_and_the_tools_are_offered() -> None:
    found = with_ground_truth(tool_row(7), "tool_calling")
    (call,) = found["ground_truth"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"word": "w7"}
    assert [message["role"] for message in found["messages"]] == ["user"]
    assert found["tools"] == [{"type": "function", "function": TOOL}]
    assert "tools" not in found["metadata"]


def test_no_call_is_a_ground_truth_of_its_own_and_arguments_become_text() -> None:
    asking = row(turn("user"), turn("assistant", "Which city?"), tools=json.dumps([TOOL]))
    assert with_ground_truth(asking, "tool_calling")["ground_truth"] == {"tool_calls": []}
    calling = row(
        turn("user"),
        turn("assistant", "Wait."),
        turn("user"),
        turn("assistant", None, tool_calls=[{"function": {"name": "f", "arguments": {"a": 1}}}]),
    )
    found = with_ground_truth(calling, "tool_calling")
    assert found["ground_truth"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("content", ["-", "", " ", None])
def test_a_prompt_that_the_set_leaves_out_is_said_with_its_source(content: str | None) -> None:
    given = row(turn("user", content), turn("assistant"), metadata={"dataset": "taco", "index": 7, "test_cases": []})
    with pytest.raises(BadRow, match=r"added from .*'dataset': 'taco', 'index': 7"):
        with_ground_truth(given, "code")


def test_a_kind_without_a_place_keeps_the_answer_for_whoever_wants_it() -> None:
    found = with_ground_truth(row(turn("user"), turn("assistant", "B"), answer="B"), "stem")
    assert (found["ground_truth"], found["reference_response"]) == ("B", "B")
    assert with_ground_truth(row(turn("user"), turn("assistant", "B")), "chat")["ground_truth"] is None


def test_rows_without_messages_keep_their_columns() -> None:
    found = with_ground_truth({"user_query": "1 + 1?", "ground_truth_for_eval": "2", "uid": 7}, "math")
    assert found == {"user_query": "1 + 1?", "ground_truth": "2", "uid": 7}


@pytest.mark.parametrize(
    "given",
    [
        {"messages": "[", "id": 1},
        {"messages": [], "id": 1},
        {"messages": [turn("user"), turn("assistant", None, tool_calls=["x"])]},
        row(turn("user"), metadata="{broken"),
        row(turn("user"), turn("assistant", None, tool_calls=[{"function": {"name": "f"}}]), tools=["x"]),
    ],
)
def test_what_is_broken_is_a_bad_row(given: dict[str, Any]) -> None:
    with pytest.raises(BadRow):
        with_ground_truth(given, "tool_calling")
