# SPDX-License-Identifier: Apache-2.0
"""A ground truth says which calls are expected, or it is an error; it never silently says "none"."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_kit.answers.tool_calls.calls import CallError
from reward_kit.answers.tool_calls.tools import read_tools
from reward_kit.models import Message
from reward_kit.rewards._tool_calls.expected_calls import read_expected

PLAIN = {"name": "f", "arguments": {"x": 1}}
OPENAI = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
TURN = {"role": "assistant", "content": None, "tool_calls": [OPENAI]}


@pytest.mark.parametrize(
    "truth",
    [
        [PLAIN],
        PLAIN,
        [OPENAI],
        OPENAI,
        {"tool_calls": [OPENAI]},
        {"tool_calls": [PLAIN]},
        TURN,
        [{"role": "user", "content": "?"}, TURN],
        Message.model_validate(TURN),
        [Message(role="user"), Message.model_validate(TURN)],
        ["f(x=1)"],
        "f(x=1)",
        "[f(x=1)]",
        '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>',
        {"role": "assistant", "content": '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'},
        *(json.dumps(shape) for shape in ([PLAIN], PLAIN, [OPENAI], {"tool_calls": [OPENAI]}, TURN)),
    ],
    ids=repr,
)
def test_many_shapes_of_one_call(truth: Any) -> None:
    (call,) = read_expected(truth, {})
    assert call.name == "f" and {name: [*value.values] for name, value in call.arguments.items()} == {"x": [1]}


@pytest.mark.parametrize(
    "truth", [[], "[]", {"tool_calls": []}, {"role": "assistant", "content": "No.", "tool_calls": None}]
)
def test_that_no_call_is_expected_is_said_in_so_many_words(truth: Any) -> None:
    assert read_expected(truth, {}) == []


@pytest.mark.parametrize(
    "truth",
    [
        None,
        "",
        "  ",
        "call f with x = 1",
        "{not json",
        7,
        True,
        {},
        {"tool_calls": None},
        {"tool_calls": "[]"},
        {"tool_calls": [{}]},
        {"tool_calls": [{"function": {}}]},
        {"calls": [PLAIN]},
        {"function_calls": []},
        {"f": {"x": 1}},
        [{"f": {"x": 1}}],
        [{"f": {"x": [1]}, "g": {"x": [1]}}],
        [None],
        [[]],
        [""],
        ["f(x=y)"],
        ["f(), g()"],
        ["f(1)"],
        [{"name": "f", "arguments": "{x: 1}"}],
        [{"name": "f", "arguments": "[1]"}],
        [{"name": "", "arguments": {}}],
        {"role": "user", "content": "f(x=1)"},
        {"role": "assistant", "content": "<tool_call>{broken</tool_call>"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
    ],
    ids=repr,
)
def test_anything_else_is_an_error(truth: Any) -> None:
    with pytest.raises(CallError):
        read_expected(truth, {})


def test_places_in_a_ground_truth_get_their_names_from_the_tools() -> None:
    tools = read_tools({"name": "f", "parameters": {"properties": {"x": {}, "y": {}}}})
    for truth in (["f(1, y=2)"], "f(1, y=2)"):
        (call,) = read_expected(truth, tools)
        assert set(call.arguments) == {"x", "y"}
    assert len(read_expected("[f(1), f(x=2)]", tools)) == 2


def test_a_function_may_be_called_like_a_key_of_ours() -> None:
    (call,) = read_expected([{"role_of": {"name": ["x"]}}], {})
    assert call.name == "role_of"
    with pytest.raises(CallError, match="no name"):
        read_tools([{"parameters": {}}])
