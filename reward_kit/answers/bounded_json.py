# SPDX-License-Identifier: Apache-2.0
"""JSON as its specification has it: no NaN, no key twice, no number too long, no nesting beyond reason.

Reading is linear in the text. What is refused is refused with a `ValueError`; nothing is repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["MAX_DEPTH", "Found", "json_in", "read_json", "read_json_at"]

MAX_DEPTH = 64
"""Nesting beyond this is refused."""

_MAX_TRIES = 128
"""Places in a text where JSON is looked for in vain."""

Found = tuple[Any, int]
"""A value, and where in the text it ends."""

_SPACE = re.compile(r"[ \t\n\r]*+")
_OPENING = re.compile(r"[{\[]")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?P<info>[^\n`]*)$", re.MULTILINE)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text} is too large")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_float=_finite)


def read_json_at(text: str, position: int) -> Found:
    """The value that begins at `position`, after spaces, and where it ends."""
    try:
        value, end = _decoder.raw_decode(text, _after_space(text, position))
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos - position}") from None
    _check_depth(value)
    return value, end


def read_json(text: str) -> Any:
    """The value that the whole of `text` is."""
    value, end = read_json_at(text, 0)
    end = _after_space(text, end)
    if end != len(text):
        raise ValueError(f"something follows the JSON at character {end}")
    return value


def json_in(text: str) -> Any:
    """The JSON document in an answer: the whole of it, else its last fenced block that is one, else the last in prose.

    A `ValueError` where there is none.
    """
    try:
        return read_json(text)
    except ValueError as error:
        problem = error
    for block in reversed(_fenced(text)):
        try:
            return read_json(block)
        except ValueError as error:
            problem = error
    found = list(_documents(text))
    if not found:
        raise ValueError(f"there is no JSON in it ({problem})")
    return found[-1]


def _fenced(text: str) -> list[str]:
    marks = list(_FENCE.finditer(text))
    blocks: list[str] = []
    for opening, closing in zip(marks[::2], marks[1::2], strict=False):
        if opening["info"].strip().lower() in {"", "json", "jsonc", "json5"}:
            blocks.append(text[opening.end() : closing.start()])
    return blocks[-_MAX_TRIES:]


def _documents(text: str) -> Iterator[Any]:
    """Objects and arrays that stand in prose. A failed attempt may read to the end, so there are only so many."""
    position = failed = 0
    while failed < _MAX_TRIES and (opening := _OPENING.search(text, position)) is not None:
        try:
            value, position = read_json_at(text, opening.start())
        except ValueError:
            position = opening.end()
            failed += 1
        else:
            yield value


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def _inside(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    children = value.values() if isinstance(value, dict) else value
    return (child for child in children if isinstance(child, (dict, list)))
