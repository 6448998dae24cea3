# SPDX-License-Identifier: Apache-2.0
r"""Python's call syntax: `f(x=1)`, or `[f(x=1), g.h("two", y=[3, {"z": None}])]`. Read, never evaluated.

A grammar of literals only, in one pass over the text: an expression such as `2 * math.pi`, or a call inside a call, is
refused. (The interpreter's own parser is not used: it wants memory many times the text and may backtrack.)
"""

from __future__ import annotations

import re
import sys
from typing import Any

from reward_kit.answers.bounded_json import MAX_DEPTH
from reward_kit.answers.tool_calls.calls import CallError, ToolCall

__all__ = ["looks_like_calls", "read_python_calls"]

_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<string>[rRuU]?(?:'''(?:[^\\']|\\.|'(?!''))*+'''|\"\"\"(?:[^\\"]|\\.|"(?!""))*+\"\"\"
        |'(?:[^\\'\n]|\\.)*+'|"(?:[^\\"\n]|\\.)*+"))
    | (?P<number>[+-]?(?:\d[\d_]*+\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?)(?![\w.])
    | (?P<name>[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+)
    | (?P<sign>[()\[\]{},:=])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BEGINS_LIKE_A_CALL = re.compile(r"\s*+\[?\s*+[^\W\d][\w.]*+\(")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_LONGEST_NUMBER = 400
_CLOSING = {"[": "]", "(": ")"}


def looks_like_calls(text: str) -> bool:
    """Whether the text as a whole has the outline of calls, readable or not."""
    return bool(_BEGINS_LIKE_A_CALL.match(text)) and text.rstrip("],` \t\r\n").endswith(")")


def read_python_calls(text: str) -> tuple[ToolCall, ...]:
    """The calls that the whole of `text` is; a `CallError` where it is anything else."""
    return _Reader(text).calls()


class _Reader:
    """Reads tokens from left to right, one of them ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        self._kind, self._token = "", ""
        self._advance()

    def calls(self) -> tuple[ToolCall, ...]:
        listed = self._take("[")
        found: list[ToolCall] = []
        while not (listed and self._token == "]") and self._kind != "end":
            found.append(self._call())
            if not self._take(","):
                break
        if listed:
            self._expect("]")
        if self._kind != "end" or (not found and not listed):
            raise self._unexpected()
        return tuple(found)

    # -- tokens

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        if match is None or match.lastgroup is None:
            near = self._text[self._position : self._position + 20]
            raise CallError(f"it is not a call with literal arguments, near {near!r}")
        self._kind, self._token, self._position = match.lastgroup, match[match.lastgroup], match.end()

    def _take(self, sign: str) -> bool:
        if self._kind != "sign" or self._token != sign:
            return False
        self._advance()
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected()

    def _unexpected(self) -> CallError:
        return CallError(f"it is not a call with literal arguments, near {self._token[:20] or 'its end'!r}")

    # -- grammar

    def _call(self) -> ToolCall:
        if self._kind != "name":
            raise self._unexpected()
        name = self._token
        self._advance()
        self._expect("(")
        named: dict[str, Any] = {}
        positional: list[Any] = []
        while not self._take(")"):
            self._argument(name, named, positional)
            if not self._take(","):
                self._expect(")")
                break
        return ToolCall(name, named, tuple(positional))

    def _argument(self, function: str, named: dict[str, Any], positional: list[Any]) -> None:
        key = self._token
        if self._kind == "name" and key not in _WORDS and "." not in key:
            self._advance()
            self._expect("=")
            if key in named:
                raise CallError(f"{function!r} is given {key!r} twice")
            named[key] = self._value()
            return
        if named:
            raise CallError(f"{function!r} is given an argument by place after one by name")
        positional.append(self._value())

    def _value(self) -> Any:
        kind, token = self._kind, self._token
        if kind == "string":
            return self._string()
        if kind == "sign" and token in "[({":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise CallError(f"it is nested more than {MAX_DEPTH} deep")
            value = self._mapping() if token == "{" else self._sequence(token)
            self._depth -= 1
            return value
        self._advance()
        if kind == "number":
            return _number(token)
        if kind == "name" and token in _WORDS:
            return _WORDS[token]
        raise CallError(f"{token[:40]!r} is no literal")

    def _string(self) -> str:
        parts = []
        while self._kind == "string":
            parts.append(_text_of(self._token))
            self._advance()
        return "".join(parts)

    def _sequence(self, opening: str) -> list[Any]:
        """A list or a tuple; both are arrays. One value in parentheses without a comma is that value."""
        self._advance()
        closing, values, commas = _CLOSING[opening], list[Any](), 0
        while not self._take(closing):
            values.append(self._value())
            if self._take(","):
                commas += 1
            else:
                self._expect(closing)
                break
        return values[0] if opening == "(" and len(values) == 1 and not commas else values

    def _mapping(self) -> dict[str, Any]:
        self._advance()
        found: dict[str, Any] = {}
        while not self._take("}"):
            if self._kind != "string":
                raise CallError("a key of an object is no text")
            key = self._string()
            self._expect(":")
            if key in found:
                raise CallError(f"the key {key!r} occurs twice")
            found[key] = self._value()
            if not self._take(","):
                self._expect("}")
                break
        return found


def _number(token: str) -> int | float:
    if len(token) > _LONGEST_NUMBER:
        raise CallError(f"a number has more than {_LONGEST_NUMBER} characters")
    try:
        return int(token)
    except ValueError:
        pass
    try:
        value = float(token)
    except ValueError as error:
        raise CallError(str(error)) from None
    if value - value != 0:
        raise CallError(f"{token!r} is too large")
    return value


def _text_of(token: str) -> str:
    """What a string literal says."""
    prefix = token[0].lower() if token[0] in "rRuU" else ""
    body = token[len(prefix) :]
    quotes = 3 if body[:3] in {"'''", '"""'} and len(body) >= len("''''''") else 1
    text = body[quotes:-quotes]
    return text if prefix == "r" or "\\" not in text else _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    *codes, octal, letter = escape.groups()
    code = next((int(digits, 16) for digits in codes if digits), int(octal, 8) if octal else None)
    if code is not None:
        if code > sys.maxunicode:
            raise CallError(f"{escape.group()!r} is no character")
        return chr(code)
    # As Python has it, an escape that is none stands for itself.
    return _ESCAPED.get(letter, letter if letter in "\\'\"" else escape.group())
