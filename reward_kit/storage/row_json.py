# SPDX-License-Identifier: Apache-2.0
"""Rows as JSON text: fast for what JSON holds, forgiving for what it can hardly hold."""

from __future__ import annotations

import json
from typing import Any

import orjson
from pydantic import BaseModel

__all__ = ["as_plain", "forgiving_json", "json_line", "json_text", "plain_json"]


def plain_json(value: Any) -> bytes:
    """The value as JSON. A `TypeError` for integers beyond 64 bits and for text that is not valid Unicode."""
    return orjson.dumps(value, default=as_plain, option=orjson.OPT_NON_STR_KEYS)


def json_line(row: dict[str, Any]) -> bytes:
    """Any row as a line of JSON, whatever a dataset or a command put into it."""
    try:
        return plain_json(row) + b"\n"
    except TypeError:
        return forgiving_json(row) + b"\n"


def json_text(value: Any) -> str:
    """Any plain value as JSON text."""
    try:
        return plain_json(value).decode()
    except TypeError:
        return _forgiving_text(value)


def forgiving_json(row: dict[str, Any]) -> bytes:
    """What `plain_json` refuses, as bytes; what is not valid Unicode becomes a question mark."""
    return _forgiving_text(row).encode("utf-8", "replace")


def _forgiving_text(value: Any) -> str:
    """JSON from the standard library, for what the fast writers refuse: slower, exact in numbers, lenient in text."""
    text = _stdlib_json(value)
    if "NaN" in text or "Infinity" in text:  # words the library writes bare, and nobody may read: null, as elsewhere
        return _stdlib_json(json.loads(text, parse_constant=lambda _: None))
    return text


def _stdlib_json(value: Any) -> str:
    return json.dumps(value, default=as_plain, ensure_ascii=False, separators=(",", ":"))


def as_plain(value: object) -> object:
    """What JSON writers do not know: models as their fields, anything else as its text."""
    return value.model_dump() if isinstance(value, BaseModel) else str(value)
