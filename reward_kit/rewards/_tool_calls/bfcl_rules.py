# SPDX-License-Identifier: Apache-2.0
"""The rules of BFCL's syntax-tree checker, so that its verdicts can be reproduced. They are not ours: see below.

Where they differ from strict comparison:

* texts are compared without case, spaces and any of `, . / - _ * ^`: "-5" passes for "5", "1.5" for "15";
* types are those the function declares: an integer passes for a float at the top level, not inside an array;
* calls are paired greedily, in order, so that a right set of calls can be refused;
* inside nested arrays and objects texts are compared exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.answers.tool_calls.calls import CallError, ToolCall
from reward_kit.answers.tool_calls.tools import Tool, Tools
from reward_kit.rewards._tool_calls.expected_calls import OMITTED, ExpectedCall

__all__ = ["bfcl_matches"]

_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "float": float, "number": float, "boolean": bool, "array": list, "tuple": list,
    "dict": dict, "object": dict, "any": str,
}  # fmt: skip
_IGNORED = str.maketrans({**dict.fromkeys(" ,./-_*^"), "'": '"'})

Choices = Sequence[Any]
"""The acceptable values of one argument."""


def bfcl_matches(expected: Sequence[ExpectedCall], made: Sequence[ToolCall], tools: Tools) -> int:
    """How many of the expected calls are paired with one that was made."""
    free = list(range(len(made)))
    for wanted in expected:
        if wanted.name not in tools:
            raise CallError(f"the function {wanted.name!r} is not among the tools, so its types are not known")
        found = next((at for at in free if _call_matches(wanted, made[at], tools[wanted.name])), None)
        if found is not None:
            free.remove(found)
    return len(made) - len(free)


def _call_matches(wanted: ExpectedCall, call: ToolCall, tool: Tool) -> bool:
    if call.name not in {wanted.name, wanted.name.replace(".", "_")} or call.positional:
        return False
    declared = tool.raw.get("properties") or {}
    given = call.arguments
    if any(name not in given for name in tool.raw.get("required") or ()):
        return False
    for name, value in given.items():
        if name not in declared or name not in wanted.arguments:
            return False
        if not _value_matches(value, wanted.arguments[name].values, declared[name]):
            return False
    return all(name in given or OMITTED in choices.values for name, choices in wanted.arguments.items())


def _value_matches(value: Any, choices: Choices, declared: Mapping[str, Any]) -> bool:
    kind = _TYPES.get(declared.get("type", ""), str)
    items = declared.get("items") if kind is list else None
    inner = _TYPES.get(items.get("type", "")) if isinstance(items, Mapping) else None
    if kind is float and type(value) is int:
        value = _as_float(value)
    if not _type_matches(value, choices, kind, inner):
        return False
    # A value of another type than the declared one stands for a variable, and is compared as it is.
    if _type_of(choices) in (kind, None) and type(value) is kind:
        given: Any = value
        if kind is dict:
            return any(_object_matches(given, choice) for choice in choices if choice != OMITTED)
        if kind is list and inner is dict:
            return any(_objects_match(given, choice) for choice in choices)
        if kind is str:
            return _plain(given) in [_plain(choice) for choice in choices if isinstance(choice, str)]
        if kind is list:
            return _plain_items(given) in [_plain_items(choice) for choice in choices]
    return value in choices


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _type_matches(value: Any, choices: Choices, kind: type, inner: type | None) -> bool:
    if type(value) is not kind:
        return type(value) is _type_of(choices)
    if inner is None:
        return True
    items: Any = value
    return any(
        not isinstance(choice, list) or all(type(item) is inner or type(item) is _type_of(choice) for item in items)
        for choice in choices
    )


def _type_of(choices: Choices) -> type | None:
    return next((type(choice) for choice in choices if choice != OMITTED), None)


def _object_matches(value: Any, choice: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(choice, Mapping):
        return False
    for key, given in value.items():
        if key not in choice or _plain(given) not in (_plain_items(choice[key]) or ()):
            return False
    return all(
        key in value or OMITTED in (options if isinstance(options, Sequence) else ()) for key, options in choice.items()
    )


def _objects_match(values: Sequence[Any], choices: Any) -> bool:
    return isinstance(choices, Sequence) and len(values) == len(choices) and all(map(_object_matches, values, choices))


def _plain_items(values: Any) -> list[Any] | None:
    return [_plain(value) for value in values] if isinstance(values, Sequence) else None


def _plain(value: Any) -> Any:
    return value.translate(_IGNORED).lower() if isinstance(value, str) else value
