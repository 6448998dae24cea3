# SPDX-License-Identifier: Apache-2.0
"""BFCL's verdicts, its faults included, on cases of the kinds its checker is known for."""

from __future__ import annotations

from typing import Any

import pytest

from reward_kit.answers.tool_calls.calls import CallError, ToolCall
from reward_kit.answers.tool_calls.tools import read_tools
from reward_kit.rewards._tool_calls.bfcl_rules import bfcl_matches
from reward_kit.rewards._tool_calls.expected_calls import read_expected

TOOL = {
    "name": "shop.order",
    "parameters": {
        "type": "dict",
        "properties": {
            "item": {"type": "string"},
            "count": {"type": "integer"},
            "price": {"type": "float"},
            "sizes": {"type": "array", "items": {"type": "float"}},
            "tags": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array"}},
            "extra": {"type": "dict"},
            "lines": {"type": "array", "items": {"type": "dict"}},
            "gift": {"type": "boolean"},
            "pair": {"type": "tuple", "items": {"type": "integer"}},
        },
        "required": ["item"],
    },
}


def accepted(wanted: dict[str, list[Any]], given: dict[str, Any], name: str = "shop.order") -> bool:
    tools = read_tools([TOOL])
    expected = read_expected([{"shop.order": wanted}], tools)
    return bfcl_matches(expected, [ToolCall(name, given)], tools) == 1


def argument(name: str, choices: list[Any], value: Any) -> bool:
    return accepted({"item": ["x"], name: choices}, {"item": "x", name: value})


@pytest.mark.parametrize(
    ("name", "choices", "value", "verdict"),
    [
        # texts: case, spaces and ,./-_*^ do not count
        ("item", ["New York"], "new york", True),
        ("item", ["5"], "-5", True),
        ("item", ["15"], "1.5", True),
        ("item", ["x^2"], "x2", True),
        ("item", ["it's"], 'it"s', True),
        ("item", ["x(2)"], "x2", False),
        ("item", ["5"], 5, False),
        # numbers: types as declared, an integer for a float at the top level only
        ("count", [5], 5, True),
        ("count", [5], 5.0, False),
        ("count", [1], True, False),
        ("count", [5], "5", False),
        # choices that make no sense for the type are none
        ("tags", [["a"], 5], ["a"], True),
        ("tags", [["a"], 5], ["b"], False),
        ("lines", [[{"a": [1]}], 5], [{"a": 1}], True),
        ("extra", [{"a": 5}], {"a": 5}, False),
        ("price", [5.0], 5, True),
        ("price", [5], 5.0, True),  # choices of another type than declared: compared as they are
        ("sizes", [[1.0, 3.0]], [1, 3], False),
        ("sizes", [[1.0, 3.0]], [1.0, 3.0], True),
        ("sizes", [[1.0, 3.0]], [3.0, 1.0], False),
        ("gift", [True], True, True),
        ("gift", [True], 1, False),
        # arrays and objects
        ("tags", [["Red", "Blue"]], ["red", "blue"], True),
        ("tags", [["a"], ["b"]], ["b"], True),
        ("tags", [["a"]], [], False),
        ("tags", [["", "a"]], ["a"], False),
        ("rows", [[["A"]]], [["a"]], False),
        ("pair", [[1, 2]], [1, 2], True),
        ("extra", [{"k": ["V", "w"], "m": ["", 1]}], {"k": "v"}, True),
        ("extra", [{"k": ["V"], "m": [1]}], {"k": "v"}, False),
        ("extra", [{"k": ["V"]}], {"k": "v", "n": 1}, False),
        ("lines", [[{"k": [1]}, {"k": [2]}]], [{"k": 1}, {"k": 2}], True),
        ("lines", [[{"k": [1]}]], [{"k": 1}, {"k": 1}], False),
        # a variable's name in place of a value
        ("count", ["n"], "n", True),
        ("count", ["n"], "m", False),
        ("tags", ["names"], "names", True),
    ],
)
def test_one_argument(name: str, choices: list[Any], value: Any, verdict: bool) -> None:
    if name == "item":
        assert accepted({"item": choices}, {"item": value}) is verdict
    else:
        assert argument(name, choices, value) is verdict


def test_what_is_missing_and_what_is_too_much() -> None:
    assert accepted({"item": ["x"], "count": ["", 1]}, {"item": "x"})
    assert not accepted({"item": ["x"], "count": [1]}, {"item": "x"})
    assert not accepted({"item": ["x", ""]}, {}), "a required parameter, whatever the choices say"
    assert not accepted({"item": ["x"]}, {"item": "x", "count": 1}), "declared and not expected"
    assert not accepted({"item": ["x"], "other": [1]}, {"item": "x", "other": 1}), "not declared"


def test_a_dot_in_a_name_may_be_an_underscore() -> None:
    assert accepted({"item": ["x"]}, {"item": "x"}, "shop_order")
    assert not accepted({"item": ["x"]}, {"item": "x"}, "shop.Order")


def test_pairing_is_greedy_so_a_right_set_can_be_refused() -> None:
    tools = read_tools([TOOL])
    expected = read_expected([{"shop.order": {"item": ["a", "b"]}}, {"shop.order": {"item": ["a"]}}], tools)
    made = [ToolCall("shop.order", {"item": "a"}), ToolCall("shop.order", {"item": "b"})]
    assert bfcl_matches(expected, made, tools) == 1
    assert bfcl_matches(expected, made[::-1], tools) == 2


def test_a_function_without_a_declaration_is_an_error() -> None:
    tools = read_tools([TOOL])
    with pytest.raises(CallError, match="not among the tools"):
        bfcl_matches(read_expected([{"other": {}}], tools), [], tools)
