# SPDX-License-Identifier: Apache-2.0
"""A tool call as a value, and the object shapes it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reward_kit.answers.bounded_json import read_json

__all__ = ["CallError", "FoundCalls", "ToolCall", "call_from_object"]

_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
"""What formats call the arguments: OpenAI and Hermes, Llama, BFCL's simulators, Anthropic."""


class CallError(ValueError):
    """Something that should be a tool call is none."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: a function's name and its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    """Arguments given by place, which only Python's call syntax has."""


class FoundCalls(NamedTuple):
    """What was read from an answer."""

    calls: tuple[ToolCall, ...] = ()
    problem: str | None = None
    """Set where the answer tries to call something and cannot be read; such an answer is wrong whatever is expected."""


def call_from_object(value: object) -> ToolCall:
    """The call that an object is: OpenAI's `{function: {name, arguments}}`, or `{name, arguments | parameters}`."""
    if not isinstance(value, Mapping):
        raise CallError(f"a call is an object with a name and arguments, and this is a {type(value).__name__}")
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return call_from_object(inner)
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        raise CallError("a call has no name")
    keys = [key for key in _ARGUMENT_KEYS if key in value]
    if len(keys) > 1:
        raise CallError(f"the call of {name!r} has both {keys[0]!r} and {keys[1]!r}")
    return ToolCall(name.strip(), arguments_from(value[keys[0]] if keys else None, name))


def arguments_from(value: object, name: str) -> Mapping[str, Any]:
    """The arguments as an object: given as one, as its JSON text, or as nothing at all."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as error:
            raise CallError(f"the arguments of {name!r} are not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise CallError(f"the arguments of {name!r} are a {type(value).__name__} and not an object")
    return value
