# SPDX-License-Identifier: Apache-2.0
"""Calls are read in every format, only where the answer makes them, and never repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.answers.tool_calls.calls import CallError
from reward_kit.answers.tool_calls.formats import calls_in_text, read_calls
from reward_kit.answers.tool_calls.tools import read_tools
from reward_kit.models import ChatCompletionMessageToolCall, FunctionCall, Message
from tests.growth import growth_of_time

WEATHER = {"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}
TOOLS = read_tools([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}}}}},
])  # fmt: skip


def read(text: str, **options: Any) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": call.arguments} for call in calls_in_text(text, **options)]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}</tool_call>',
        'I see.\n<tool_call>\n{"arguments": {"city": "Oslo", "days": 3}, "name": "get_weather"}\n</tool_call>\nOh.',
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\", \\"days\\": 3}"}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}',  # generation stopped at the tag
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>",
        '<function=get_weather>{"city": "Oslo", "days": 3}</function><|eom_id|>',
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}<|eom_id|>',
        '<|python_tag|>get_weather(city="Oslo", days=3)',
        '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]</s>',
        '[TOOL_CALLS]get_weather{"city": "Oslo", "days": 3}',
        '[TOOL_CALLS]get_weather[CALL_ID]a1B2[ARGS]{"city": "Oslo", "days": 3}',
        '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}',
        '[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]',
        '{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}]}',
        '[{"function": {"name": "get_weather", "arguments": "{\\"city\\":\\"Oslo\\",\\"days\\":3}"}}]',
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n```',
        'get_weather(city="Oslo", days=3)',
        "\n\n[get_weather(city='Oslo', days=3)]\n",
        "```python\n[\n  get_weather(city='Oslo', days=3),\n]\n```",
        "<think>Perhaps get_weather(city='Rome', days=1)?</think>[get_weather(city='Oslo', days=3)]",
        "[get_weather(city='Oslo', days=3)]\n```",  # the prompt opened the fence
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}',
    ],
)
def test_one_call_in_many_dialects(text: str) -> None:
    assert read(text) == [WEATHER]


def test_tool_calls_of_the_message_come_first() -> None:
    function = FunctionCall(name="get_weather", arguments='{"city": "Oslo", "days": 3}')
    message = Message(
        role="assistant",
        content='<tool_call>{"name": "other"}</tool_call>',
        tool_calls=[ChatCompletionMessageToolCall(function=function)],
    )
    assert [call.name for call in read_calls(message).calls] == ["get_weather"]
    older = Message(role="assistant", content=None, function_call=function)
    assert read_calls(older).calls == read_calls(message).calls


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n<tool_call>{"name": "g", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f"}\n{"name": "g"}</tool_call>',
        '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}',
        "<function=f>{}</function><function=g>{}</function>",
        "[TOOL_CALLS]f{}[TOOL_CALLS]g{}",
        "[f(), g()]",
        "f(), g()",
    ],
)
def test_parallel_calls_keep_their_order(text: str) -> None:
    assert read(text) == [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is sunny in Oslo.",
        "[]",
        '{"name": "Ada", "age": 36}',
        '[{"name": "Ada"}, {"name": "Bob"}]',
        "[1, 2, 3]",
        "You could write `get_weather(city='Oslo')` here.",
        "Use it so:\n```python\nget_weather(city='Oslo')\n```\nand you will see.",
        "<think><tool_call>{}</tool_call></think>No call is needed.",
        "f(x) is a function of x.",
    ],
)
def test_what_calls_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('<tool_call>{"name": "f", "arguments": {"x": 1}</tool_call>', "not JSON"),
        ("<tool_call>{'name': 'f'}</tool_call>", "not JSON"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1,}}</tool_call>', "not JSON"),
        ('<tool_call>{"name": "f"} and then</tool_call>', "after its JSON"),
        ('<tool_call>{"arguments": {}}</tool_call>', "no name"),
        ('<tool_call>{"name": "f", "arguments": [1]}</tool_call>', "not an object"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1, "x": 2}}</tool_call>', "twice"),
        ('<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>', "NaN"),
        ('<tool_call>{"name": "f", "arguments": {}, "parameters": {"x": 1}}</tool_call>', "both"),
        ("<function=f>{}", "never closed"),
        ("[TOOL_CALLS] f(x=1)", "not JSON"),
        ("[f(x=2*math.pi)]", "literal"),
        ("f(x=g(1))", "literal"),
        ("f(x=y)", "no literal"),
        ("f(x=1, x=2)", "twice"),
    ],
)
def test_an_attempt_that_cannot_be_read_is_a_problem(text: str, why: str) -> None:
    with pytest.raises(CallError, match=why):
        read(text)
    assert why in str(read_calls(Message(role="assistant", content=text)).problem)


def test_bare_text_takes_the_type_the_tool_declares() -> None:
    inside = "<parameter=city>10</parameter><parameter=days>3</parameter>"
    text = f"<tool_call><function=get_weather>{inside}</function></tool_call>"
    assert read(text, tools=TOOLS) == [{"name": "get_weather", "arguments": {"city": "10", "days": 3}}]


@pytest.mark.parametrize("arguments", ['{"city": "Oslo", "days": 3}', '"{\\"city\\": \\"Oslo\\", \\"days\\": 3}"'])
def test_a_name_may_be_the_key_where_it_is_a_tools(arguments: str) -> None:
    assert read(f'[{{"get_weather": {arguments}}}]', tools=TOOLS) == [WEATHER]
    assert read(f'[{{"get_weather": {arguments}}}]') == []
    assert read(f'{{"weather": {arguments}}}', tools=TOOLS) == []


def test_places_become_names_where_the_tool_says_them() -> None:
    reading = read_calls(Message(role="assistant", content='get_weather("Oslo", days=3)'), TOOLS)
    assert [dict(call.arguments) for call in reading.calls] == [WEATHER["arguments"]]
    assert read_calls(Message(role="assistant", content='get_weather("Oslo", city="Rome")'), TOOLS).problem
    assert read_calls(Message(role="assistant", content='get_weather("a", 1, 2)'), TOOLS).problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_whatever_json_holds_comes_back(arguments: dict[str, Any]) -> None:
    written = json.dumps({"name": "f", "arguments": arguments})
    assert read(f"<tool_call>{written}</tool_call>") == [{"name": "f", "arguments": arguments}]
    assert read(f"[TOOL_CALLS] [{written}]") == [{"name": "f", "arguments": arguments}]


@given(st.text())
def test_no_text_is_too_strange_to_read(text: str) -> None:
    for mark in ("", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>", "<function=f>", "f("):
        read_calls(Message(role="assistant", content=mark + text))


@pytest.mark.parametrize(
    ("before", "part", "after"),
    [
        ("", "<tool_call>", ""),
        ("<tool_call>", "[", ""),
        ("<tool_call>", '{"a":', ""),
        ('<tool_call>{"name": "f", "arguments": {"x": "', "a", '"}}</tool_call>'),
        ('<tool_call>{"name": "f", "arguments": {"x": ', "9", "}}</tool_call>"),
        ("", "<function=f>", ""),
        ("", "<function=", ""),
        ("<function=f>", "<parameter=x>", "</function>"),
        ("", "[TOOL_CALLS]", ""),
        ("<|python_tag|>", "f(", ""),
        ("f(", "[", ""),
        ("f(x=", "'", ")"),
        ("f(x=", "\\", ")"),
        ("f(x=", "9", ")"),
        ("", " ", ""),
        ("[", " ", "f()"),
        ("", "```\n", ""),
        ("", "<think>", ""),
        ("", "a.", "()"),
        ("<tool_call>", '{"name":"f"}', ""),
    ],
)
def test_eight_times_the_text_is_no_more_than_eight_times_the_work(before: str, part: str, after: str) -> None:
    """With room for noise; a pass that went back over the text would take 64 times."""

    def work(size: int) -> None:
        read_calls(Message(role="assistant", content=before + part * (size // len(part)) + after), TOOLS)

    assert growth_of_time(work, 25_000, times=8, at_least=0.002) < 30
