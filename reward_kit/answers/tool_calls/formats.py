# SPDX-License-Identifier: Apache-2.0
"""The tool calls of an answer, in the format it is written in.

| format | looks like |
|---|---|
| OpenAI | the message's `tool_calls` (or `function_call`), arguments as JSON text |
| Hermes, Qwen | `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, several in a row |
| Qwen-Coder | `<tool_call><function=NAME><parameter=P>text</parameter></function></tool_call>` |
| Llama | `<function=NAME>{…}</function>`; `<|python_tag|>` before JSON (parted by `;`) or Python calls |
| Mistral | `[TOOL_CALLS]` before a JSON list, or before `NAME{…}` / `NAME[ARGS]{…}` |
| JSON | the whole answer, bare or in one fence: `{"name", "arguments"}`, a list of such, `{"tool_calls": […]}` |
| Python | the whole answer, bare or in one fence: `f(x=1)`, `[f(x=1), g(y="two")]` |
| BFCL | as JSON: `[{NAME: {…}}]`, where NAME is an offered tool's |

Calls count where the answer makes them: not inside the thinking, and not as an illustration in prose. What begins like
a call and cannot be read is a problem, never repaired. One `<tool_call>` at the very end may lack its closing tag,
because generation often stops there; and of a fence either end may be missing, because a prompt may have opened it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from reward_kit.answers.bounded_json import Found, read_json, read_json_at
from reward_kit.answers.reasoning import without_reasoning
from reward_kit.answers.tool_calls.calls import CallError, FoundCalls, ToolCall, call_from_object
from reward_kit.answers.tool_calls.python_calls import looks_like_calls, read_python_calls
from reward_kit.answers.tool_calls.tools import Tools
from reward_kit.models import Message

__all__ = ["calls_in_text", "read_calls"]

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_LLAMA, _MISTRAL = "<|python_tag|>", "[TOOL_CALLS]"
_END_TOKENS = re.compile(r"(?:<\|(?:eom_id|eot_id|im_end|end_of_text|endoftext)\|>|</s>|\s++)++\Z")
_FUNCTION = re.compile(r"<function=([^<>\s]{1,200})>")
_PARAMETER = re.compile(r"<parameter=([^<>\s]{1,200})>")
_FENCED = re.compile(r"(```|~~~)[^\n`]*+\n(?P<inside>.*)\n\s*\1\s*\Z", re.DOTALL)
_HALF_FENCE = re.compile(r"\A```[^\n`]*+\n|\n\s*```\Z")
_MISTRAL_NAME = re.compile(r"\s*+([\w.\-]{1,200})(?:\[CALL_ID\][\w\-]{1,64})?(?:\[ARGS\])?")
_SPACE = re.compile(r"\s*+")
_CALL_KEYS = ("arguments", "parameters", "args", "input")


def read_calls(message: Message, tools: Tools | None = None) -> FoundCalls:
    """The calls a message makes. `tools` give a type to what a format writes as bare text, and names to places."""
    try:
        calls = tuple(_from_message(message, tools or {}))
        return FoundCalls(tuple(_by_name(call, tools or {}) for call in calls))
    except CallError as error:
        return FoundCalls(problem=str(error)[:_SHOWN])


def calls_in_text(text: str, tools: Tools | None = None) -> tuple[ToolCall, ...]:
    """The calls in an answer's text; a `CallError` where it tries to make some and they cannot be read."""
    answer = _without_end(without_reasoning(text))
    marks = {mark: at for mark in _MARKED if (at := answer.find(mark)) >= 0}
    if not marks:
        return tuple(_bare(answer, tools or {}))
    return tuple(_MARKED[min(marks, key=marks.__getitem__)](answer, tools or {}))


def _from_message(message: Message, tools: Tools) -> Iterator[ToolCall]:
    if message.tool_calls:
        yield from (call_from_object({"function": call.function.model_dump()}) for call in message.tool_calls)
    elif message.function_call is not None:
        yield call_from_object(message.function_call.model_dump())
    else:
        yield from calls_in_text(message.text, tools)


def _by_name(call: ToolCall, tools: Tools) -> ToolCall:
    """The call with what it gives by place given by name, where the tool says which names."""
    tool = tools.get(call.name)
    if not call.positional or tool is None:
        return call
    names = list(tool.parameters)[: len(call.positional)]
    if len(names) < len(call.positional) or any(name in call.arguments for name in names):
        raise CallError(f"{call.name!r} is given more arguments by place than it has parameters left")
    return ToolCall(call.name, {**dict(zip(names, call.positional, strict=True)), **call.arguments})


# ── formats with marks ──────────────────────────────────────────────────────────────────────────────────────────────


def _hermes(text: str, tools: Tools) -> Iterator[ToolCall]:
    position = text.find(_OPEN)
    while position >= 0:
        position = _after_space(text, position + len(_OPEN))
        if text.startswith("<function=", position):
            close = text.find(_CLOSE, position)
            end = len(text) if close < 0 else close
            yield from _llama_functions(text[position:end], tools)
        else:
            found, end = _one_or_more(text, position)
            yield from found
        end = _after_space(text, end)
        if end < len(text) and not text.startswith(_CLOSE, end):
            raise CallError(f"a {_OPEN} holds something after its JSON, near {text[end : end + 20]!r}")
        position = text.find(_OPEN, end)


def _one_or_more(text: str, position: int) -> tuple[list[ToolCall], int]:
    """The JSON calls that stand in a row from `position`, and where they end."""
    found: list[ToolCall] = []
    while not found or text.startswith(("{", "["), position):
        value, position = _json_at(text, position)
        found += _calls_of(value)
        position = _after_space(text, position)
    return found, position


def _llama_functions(text: str, tools: Tools) -> Iterator[ToolCall]:
    position = 0
    while (opening := _FUNCTION.search(text, position)) is not None:
        close = text.find("</function>", opening.end())
        if close < 0:
            raise CallError(f"{opening.group()!r} is never closed")
        yield _function(opening[1], text[opening.end() : close], tools)
        position = close


def _function(name: str, body: str, tools: Tools) -> ToolCall:
    if not _PARAMETER.search(body):
        return call_from_object({"name": name, "arguments": body.strip()})
    found: dict[str, Any] = {}
    position = 0
    while (opening := _PARAMETER.search(body, position)) is not None:
        close = body.find("</parameter>", opening.end())
        if close < 0 or opening[1] in found:
            raise CallError(f"{opening.group()!r} of {name!r} is never closed, or is given twice")
        found[opening[1]] = _typed(body[opening.end() : close], name, opening[1], tools)
        position = close
    return ToolCall(name, found)


def _typed(text: str, name: str, parameter: str, tools: Tools) -> Any:
    """Bare text as a value: as it is where a text is declared, else as JSON if it is some."""
    text = text.removeprefix("\n").removesuffix("\n")
    declared = tools[name].declared_type(parameter) if name in tools else None
    if declared == "string":
        return text
    try:
        return read_json(text)
    except ValueError:
        return text


def _mistral(text: str, tools: Tools) -> Iterator[ToolCall]:
    position = text.find(_MISTRAL)
    while position < len(text):
        if not text.startswith(_MISTRAL, position):
            raise CallError(f"something follows a call after {_MISTRAL}, near {text[position : position + 20]!r}")
        position = _after_space(text, position + len(_MISTRAL))
        name = None if text.startswith(("[", "{"), position) else _MISTRAL_NAME.match(text, position)
        value, end = _json_at(text, name.end() if name else position)
        yield from _calls_of({"name": name[1], "arguments": value} if name else value)
        position = _after_space(text, end)


def _llama(text: str, tools: Tools) -> Iterator[ToolCall]:
    calls = text.split(_LLAMA, 1)[1].strip()
    if not calls.startswith(("{", "[{")):
        yield from read_python_calls(calls)
        return
    position = 0
    while position < len(calls):
        value, position = _json_at(calls, position)
        yield from _calls_of(value)
        position = _after_space(calls, position)
        if position < len(calls):
            if calls[position] != ";":
                raise CallError(f"calls are not parted by ';', near {calls[position : position + 20]!r}")
            position = _after_space(calls, position + 1)


_MARKED: Mapping[str, Callable[[str, Tools], Iterator[ToolCall]]] = {
    _OPEN: _hermes,
    _MISTRAL: _mistral,
    _LLAMA: _llama,
    "<function=": _llama_functions,
}
"""How to read an answer that holds a mark; where it holds several, the first in the text counts."""


# ── the whole answer ─────────────────────────────────────────────────────────────────────────────────────────────────


def _bare(text: str, tools: Tools) -> Iterator[ToolCall]:
    bare = text.strip()
    fenced = _FENCED.match(bare)
    if fenced and "```" not in fenced["inside"]:
        bare = fenced["inside"].strip()
    elif bare.count("```") == 1:
        bare = _HALF_FENCE.sub("", bare).strip()
    if looks_like_calls(bare):
        yield from read_python_calls(bare)
    elif bare.startswith(("{", "[")):
        try:
            value = read_json(bare)
        except ValueError:
            return  # an answer that is no JSON calls nothing
        value = _with_names(value, {known for name in tools for known in (name, name.replace(".", "_"))})
        if _is_calls(value):
            yield from _calls_of(value)


def _with_names(value: Any, names: Collection[str]) -> Any:
    """A document in which what BFCL writes as `{NAME: arguments}` is written as most do."""
    if isinstance(value, list):
        return [_with_names(item, names) for item in value]
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, arguments),) = value.items()
        return {"name": name, "arguments": arguments} if name in names else value
    return value


def _is_calls(value: object) -> bool:
    """Whether a document is meant as calls: any other JSON is an answer like any other."""
    if isinstance(value, list):
        return bool(value) and all(_is_calls(item) for item in value)
    if not isinstance(value, Mapping):
        return False
    inner = value.get("function")
    named = isinstance(value.get("name"), str) and any(key in value for key in _CALL_KEYS)
    return "tool_calls" in value or named or (isinstance(inner, Mapping) and _is_calls(inner))


def _calls_of(value: object) -> Iterator[ToolCall]:
    if isinstance(value, list):
        for item in value:
            yield from _calls_of(item)
    elif isinstance(value, Mapping) and "tool_calls" in value:
        listed = value["tool_calls"]
        if not isinstance(listed, list):
            raise CallError("'tool_calls' is not a list")
        yield from (call_from_object(item) for item in listed)
    else:
        yield call_from_object(value)


def _json_at(text: str, position: int) -> Found:
    try:
        return read_json_at(text, position)
    except ValueError as error:
        raise CallError(f"it is not JSON: {error}") from None


def _without_end(text: str) -> str:
    """The text without the tokens that end a turn, which some servers leave in."""
    tail = text[-_LONGEST_END:]
    end = _END_TOKENS.search(tail)
    return text if end is None else text[: len(text) - (len(tail) - end.start())]


_LONGEST_END = 200
_SHOWN = 300
"""Characters of a problem that are told: it may quote a name of any length."""


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
