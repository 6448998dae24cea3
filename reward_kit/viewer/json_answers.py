# SPDX-License-Identifier: Apache-2.0
"""Values as JSON that every browser can read, whatever a model wrote: lone surrogates, huge numbers, bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

__all__ = ["as_json"]

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_LARGEST = 2**63


def as_json(value: Any) -> bytes:
    """The value as JSON in UTF-8. What JSON cannot say is replaced, never refused."""
    try:
        return orjson.dumps(value, option=_OPTIONS, default=_plain)
    except (TypeError, UnicodeEncodeError, RecursionError):
        return orjson.dumps(_cleaned(value), option=_OPTIONS, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


_DEEPEST = 200


def _cleaned(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int) and not -_LARGEST <= value < 2 * _LARGEST:
        return str(value)
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {_cleaned(str(key)): _cleaned(held, depth + 1) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(held, depth + 1) for held in value]
    return value
