# SPDX-License-Identifier: Apache-2.0
"""What counts as the same call: by rule, at every depth, in any order, with defaults and acceptable values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.tool_calls.calls import ToolCall
from reward_kit.answers.tool_calls.tools import read_tools
from reward_kit.rewards._tool_calls.agreement import Agreement, CallComparer, f1
from reward_kit.rewards._tool_calls.expected_calls import read_expected
from reward_kit.rewards._tool_calls.values import Coercion, as_multiset, value_key


def same(wanted: Any, given: Any, coercion: Coercion = "strict") -> bool:
    return value_key(wanted, coercion) == value_key(given, coercion)


def agreement(expected: Any, made: list[tuple[str, dict[str, Any]]], tools: Any = None, **rules: Any) -> Agreement:
    offered = read_tools(tools) if tools else {}
    calls = [ToolCall(name, arguments) for name, arguments in made]
    return CallComparer(offered, **rules).of(read_expected(expected, offered), calls)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(1, 1.0), (0, -0.0), ([1, {"a": 2.0}], [1.0, {"a": 2}]), (" a", "a "), ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
     ((1, 2), [1, 2]), (2**60, float(2**60)), (None, None), (True, True)],
)  # fmt: skip
def test_strictly_the_same(wanted: Any, given: Any) -> None:
    assert same(wanted, given) and same(given, wanted)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(1, True), (0, False), (0, None), ("", None), (5, "5"), ("5", "-5"), ("1.5", "15"), ("a", "A"), ([1, 2], [2, 1]),
     ({}, []), ({"a": None}, {}), ([True], [1]), (2**60, 2**60 + 1), (0.1, 0.1000001), ("a b", "a  b"), ([], None)],
)  # fmt: skip
def test_strictly_different(wanted: Any, given: Any) -> None:
    assert not same(wanted, given) and not same(given, wanted)


def test_what_lenient_forgives_besides_and_what_it_does_not() -> None:
    alike: list[tuple[Any, Any]] = [
        (5, "5"),
        (5, "5.0"),
        (-5, "-5"),
        ("New York", " new  york"),
        (True, "True"),
        ("ﬁ", "fi"),
    ]
    assert all(same(one, other, "lenient") for one, other in alike)
    unlike: list[tuple[Any, Any]] = [
        (5, "-5"),
        ("1.5", "15"),
        (1, True),
        ("a", "b"),
        (None, "null"),
        ("x^2", "x2"),
        (5, "five"),
    ]
    assert not any(same(one, other, "lenient") for one, other in unlike)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.randoms())
def test_every_value_is_itself_and_a_set_forgets_its_order(value: Any, random: Any) -> None:
    for coercion in ("exact", "strict", "lenient"):
        assert same(value, value, coercion)
    items = [value, 1, "x", value]
    shuffled = list(items)
    random.shuffle(shuffled)
    assert as_multiset(value_key(items, "strict")) == as_multiset(value_key(shuffled, "strict"))


def test_calls_are_paired_optimally_where_a_greedy_pairing_fails() -> None:
    expected = [{"f": {"x": ["a", "b"]}}, {"f": {"x": ["a"]}}]
    assert agreement(expected, [("f", {"x": "a"}), ("f", {"x": "b"})]).complete


def test_order_counts_only_when_asked() -> None:
    expected = [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]
    swapped: list[tuple[str, dict[str, Any]]] = [("g", {}), ("f", {})]
    assert agreement(expected, swapped).complete
    assert not agreement(expected, swapped, ordered=True).complete
    assert agreement(expected, swapped[::-1], ordered=True).complete


def test_every_call_counts_once() -> None:
    expected = [{"name": "f", "arguments": {"x": 1}}] * 2
    call = ("f", {"x": 1})
    assert agreement(expected, [call, call]).complete
    once, thrice = agreement(expected, [call]), agreement(expected, [call] * 3)
    assert not once.complete and not thrice.complete
    assert (once.matched, thrice.matched) == (1, 2)
    assert f1(once.matched, 2, 1) == pytest.approx(2 / 3) and f1(0, 0, 0) == 1.0


DEFAULTS = [{"name": "f", "parameters": {"properties": {
    "x": {"type": "integer"}, "unit": {"type": "string", "default": "cm"}}}}]  # fmt: skip


def test_an_argument_with_its_default_may_as_well_be_left_out() -> None:
    bare: dict[str, Any] = {"x": 1}
    full: dict[str, Any] = {"x": 1, "unit": "cm"}
    for wanted, made in [(bare, full), (full, bare)]:
        assert agreement([{"name": "f", "arguments": wanted}], [("f", made)], DEFAULTS).complete
        assert not agreement([{"name": "f", "arguments": wanted}], [("f", made)]).complete
    other = agreement([{"name": "f", "arguments": bare}], [("f", {"x": 1, "unit": "m"})], DEFAULTS)
    assert not other.complete and "'unit'" in str(other.first_difference)


def test_acceptable_values_and_what_may_be_left_out() -> None:
    expected = [{"f": {"x": [1, 2], "y": ["", "a"], "z": [{"k": [1, 2], "m": ["", 5]}], "l": [[{"k": [1]}], ""]}}]
    for fine in [{"x": 1, "z": {"k": 2}}, {"x": 2.0, "y": "a", "z": {"k": 1, "m": 5}, "l": [{"k": 1}]}]:
        assert agreement(expected, [("f", fine)]).complete, fine
    wrong_ones: list[dict[str, Any]] = [
        {"x": 3, "z": {"k": 1}},
        {"x": 1, "y": "", "z": {"k": 1}},
        {"x": 1, "z": {"k": 3}},
        {"x": 1, "z": {"m": 5}},
        {"x": 1, "z": {"k": 1, "n": 0}},
        {"x": 1, "z": {"k": 1}, "l": []},
        {"x": 1, "z": [1]},
        {"x": 1},
        {"z": {"k": 1}},
    ]
    for wrong in wrong_ones:
        assert not agreement(expected, [("f", wrong)]).complete, wrong


def test_arrays_are_ordered_unless_marked() -> None:
    expected = [{"name": "f", "arguments": {"tags": ["a", "b", "b"]}}]
    made = [("f", {"tags": ["b", "a", "b"]})]
    assert not agreement(expected, made).complete
    assert agreement(expected, made, unordered_arguments=["tags"]).complete
    assert agreement(expected, made, unordered_arguments=["f.tags"]).complete
    assert not agreement(expected, [("f", {"tags": ["a", "b"]})], unordered_arguments=["tags"]).complete
    assert not agreement(expected, made, unordered_arguments=["g.tags"]).complete


def test_names_are_exact_and_a_dot_is_an_underscore_only_when_lenient() -> None:
    expected = [{"name": "math.add", "arguments": {}}]
    assert not agreement(expected, [("math_add", {})]).complete
    assert agreement(expected, [("math_add", {})], coercion="lenient").complete
    assert not agreement(expected, [("Math.add", {})], coercion="lenient").complete
