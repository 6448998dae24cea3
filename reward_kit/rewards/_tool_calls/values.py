# SPDX-License-Identifier: Apache-2.0
"""When two argument values are the same: by a key that equal values share, so that sets and counts come for free.

| | strict | lenient, besides |
|---|---|---|
| numbers | 1 = 1.0 at every depth; a number is never a boolean or a text | the text "5" = 5, "5.0" = 5 |
| booleans, null | only themselves | the texts "true", "false" are booleans |
| texts | equal after spaces at both ends are taken away | letter case, Unicode form and inner spaces do not count |
| arrays | same values in the same order | |
| objects | same keys, same values | |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping
from typing import Any, Literal

from reward_kit.answers.bounded_json import MAX_DEPTH

__all__ = ["Coercion", "as_multiset", "value_key"]

Coercion = Literal["exact", "strict", "lenient"]
"""How much is forgiven; `exact` is strict, and spaces at the ends of a text count."""

_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?")
_SPACES = re.compile(r"\s++")


def value_key(value: Any, coercion: Coercion, depth: int = 0) -> Hashable:
    """A key that two values share exactly if they are the same; a `ValueError` for what is no plain value."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, bool):
        return (type(value).__name__, value)
    if isinstance(value, (int, float)):
        return ("number", value)
    if isinstance(value, str):
        return _text_key(value) if coercion == "lenient" else ("text", value if coercion == "exact" else value.strip())
    if isinstance(value, Mapping):
        keys = ((str(name), value_key(inner, coercion, depth + 1)) for name, inner in value.items())
        return ("object", frozenset(keys))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(value_key(inner, coercion, depth + 1) for inner in value))
    raise ValueError(f"a {type(value).__name__} is no plain value")


def as_multiset(key: Hashable) -> Hashable:
    """The key of an array without its order; any other key as it is."""
    match key:
        case ("array", tuple(items)):
            counts: dict[Hashable, int] = {}
            for item in items:
                counts[item] = counts.get(item, 0) + 1
            return ("set", frozenset(counts.items()))
    return key


def _text_key(text: str) -> Hashable:
    plain = _SPACES.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()
    if plain in {"true", "false"}:
        return ("bool", plain == "true")
    if _NUMBER.fullmatch(plain):
        return ("number", float(plain) if set(plain) & set(".e") else int(plain))
    return ("text", plain)
