# SPDX-License-Identifier: Apache-2.0
"""The calls that are expected, from a ground truth. What cannot be read as such is an error, never "no call expected".

| ground truth | means |
|---|---|
| `[]`, `{"tool_calls": []}`, an assistant's turn without calls | no call is expected |
| `{"tool_calls": […]}`, an assistant's turn, a conversation that ends in one | its calls |
| a list of calls, or one alone: OpenAI's shape, `{name, arguments}`, or the text `"f(x=1)"` | these calls |
| a list of `{function: {parameter: [value, …]}}` | BFCL: each value is one of these; `""` among them: may be left out |

Any of them may be given as JSON text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from reward_kit.answers.bounded_json import read_json
from reward_kit.answers.tool_calls.calls import CallError, ToolCall, call_from_object
from reward_kit.answers.tool_calls.formats import calls_in_text, read_calls
from reward_kit.answers.tool_calls.python_calls import read_python_calls
from reward_kit.answers.tool_calls.tools import Tools
from reward_kit.models import Message

__all__ = ["OMITTED", "Acceptable", "ExpectedCall", "read_expected"]

OMITTED = ""
"""Among BFCL's acceptable values: the argument may be left out."""


class Acceptable(NamedTuple):
    """The values an argument may have."""

    values: Sequence[Any]
    choices: bool
    """Whether objects among the values hold a list of acceptable values per key, as BFCL writes them."""

    @property
    def may_be_omitted(self) -> bool:
        """Whether the argument need not be given."""
        return self.choices and any(isinstance(value, str) and value == OMITTED for value in self.values)


class ExpectedCall(NamedTuple):
    """A call that is expected."""

    name: str
    arguments: Mapping[str, Acceptable]

    @classmethod
    def exactly(cls, call: ToolCall) -> ExpectedCall:
        """The call as it stands, every argument with the one value it has."""
        if call.positional:
            raise CallError(f"the call of {call.name!r} gives arguments by place, and no tool says their names")
        return cls(call.name, {name: Acceptable([value], False) for name, value in call.arguments.items()})


def read_expected(ground_truth: object, tools: Tools) -> list[ExpectedCall]:
    """The expected calls; a `CallError` where the ground truth says nothing that can be understood."""
    if isinstance(ground_truth, str):
        ground_truth = _from_text(ground_truth)
    if isinstance(ground_truth, Message):
        return _from_turn(ground_truth, tools)
    if isinstance(ground_truth, Mapping):
        return _from_mapping(ground_truth, tools)
    if isinstance(ground_truth, (list, tuple)):
        return _from_list(ground_truth, tools)
    raise CallError(f"it is {_kind(ground_truth)}")


def _from_text(text: str) -> object:
    stripped = text.strip()
    if not stripped:
        raise CallError("it is an empty text")
    try:
        return read_json(stripped)
    except ValueError as error:
        problem = error
    found = calls_in_text(stripped)
    if not found:
        raise CallError(f"it is a text that holds no call and is not JSON: {problem}")
    return found


def _from_turn(message: Message, tools: Tools) -> list[ExpectedCall]:
    if message.role != "assistant":
        raise CallError(f"it ends with a turn of {message.role!r} and not with the assistant's")
    reading = read_calls(message, tools)
    if reading.problem is not None:
        raise CallError(reading.problem)
    return [ExpectedCall.exactly(call) for call in reading.calls]


def _from_mapping(value: Mapping[Any, Any], tools: Tools) -> list[ExpectedCall]:
    if "role" in value:
        return _from_turn(_message(value), tools)
    if "tool_calls" in value:
        if not isinstance(value["tool_calls"], list):
            raise CallError(f"its 'tool_calls' are {_kind(value['tool_calls'])} and not a list")
        return _from_list(value["tool_calls"], tools)
    return [_entry(value, tools)]


def _from_list(values: Sequence[Any], tools: Tools) -> list[ExpectedCall]:
    last = values[-1] if values else None
    if isinstance(last, Message):
        return _from_turn(last, tools)
    if isinstance(last, Mapping) and "role" in last:
        return _from_turn(_message(last), tools)
    return [_entry(value, tools) for value in values]


def _entry(value: object, tools: Tools) -> ExpectedCall:
    if isinstance(value, str):
        calls = read_python_calls(value)
        if len(calls) != 1:
            raise CallError(f"the entry {value[:80]!r} holds {len(calls)} calls and not one")
        value = calls[0]
    if isinstance(value, ToolCall):
        return ExpectedCall.exactly(_placed(value, tools))
    if isinstance(value, Mapping) and not {"name", "function"} & value.keys():
        return _acceptable(value)
    return ExpectedCall.exactly(call_from_object(value))


def _placed(call: ToolCall, tools: Tools) -> ToolCall:
    names = list(tools[call.name].parameters) if call.positional and call.name in tools else []
    if len(names) < len(call.positional):
        return call
    return ToolCall(call.name, {**dict(zip(names, call.positional, strict=False)), **call.arguments})


def _acceptable(value: Mapping[Any, Any]) -> ExpectedCall:
    """A call in BFCL's shape, `{function: {argument: [every value that is right]}}`."""
    if len(value) != 1:
        raise CallError(f"an entry names {len(value)} functions: {sorted(map(str, value))[:5]}")
    ((name, arguments),) = value.items()
    listed = isinstance(arguments, Mapping) and all(isinstance(values, list) for values in arguments.values())
    if not listed:
        raise CallError(f"the entry for {name!r} does not give a list of acceptable values for each parameter")
    return ExpectedCall(str(name), {key: Acceptable(values, True) for key, values in arguments.items()})


def _message(value: Mapping[Any, Any]) -> Message:
    try:
        return Message.model_validate(dict(value))
    except ValidationError as error:
        raise CallError(f"its turn is not a message: {error.errors()[0]['msg']}") from None


def _kind(value: object) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
