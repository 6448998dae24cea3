# SPDX-License-Identifier: Apache-2.0
"""JSON read and written so that every number keeps its digits: at the speed of orjson wherever orjson is exact.

orjson makes floats of integers beyond 64 bits, and of an object's equal keys takes the last. A cheap look at the text
says where that may happen; only such a text is read by the standard library, under the same strict rules. What
orjson refuses to write is written by the standard library, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

import orjson

__all__ = ["JSONDecodeError", "Texts", "dumps", "loads", "loads_for_figures", "loads_with_texts"]

JSONDecodeError = orjson.JSONDecodeError
"""What is raised for a text that is not JSON, whoever read it. Where it holds no `doc`, its `pos` says nothing."""

_WIDE = b"0" * 19
"""As many digits as an integer beyond 64 bits has at least, once all digits are told alike."""
_DIGITS_ALIKE = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_HALF_A_PAIR = re.compile(r"\\u[dD][89abAB]")
_WRITTEN_OTHERWISE = re.compile(
    rb"[:,\[]\s*-?(?:[0-9]+\.(?:[0-9]+0|0000[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]+"
    rb"|(?=[0-9.]{17})[0-9]+\.[0-9]+)\s*[,}\]]"
)
"""A float that Python may write otherwise: with zeros at its end, with an exponent, or with very many digits."""

_FLAT = frozenset({str, int, float, bool, type(None)})

Texts = dict[int, tuple[float, str]]
"""By the `id()` of a float: the float, which so lives as long as this, and how it was written."""


def loads(data: bytes | str, *, unique_keys: bool = False) -> Any:
    """What the text holds; a `JSONDecodeError` where it is not JSON, or with `unique_keys` has a key twice."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if _WIDE in raw.translate(_DIGITS_ALIKE):
        return _exactly(raw, unique_keys=unique_keys)
    value = orjson.loads(raw)
    if unique_keys and not _as_many_texts(raw, value):
        return _exactly(raw, unique_keys=True)
    return value


def loads_for_figures(data: bytes) -> Any:
    """The same for a line of ours of which only figures are read: an integer beyond 64 bits may become a float."""
    try:
        return orjson.loads(data)
    except JSONDecodeError:
        return loads(data)


def loads_with_texts(data: bytes, *, unique_keys: bool = False) -> tuple[Any, Texts]:
    """What the text holds, and how those of its floats are written there that Python writes otherwise."""
    if _WRITTEN_OTHERWISE.search(data) is None:
        return loads(data, unique_keys=unique_keys), {}
    texts: Texts = {}

    def keep(text: str) -> float:
        value = _finite(text)
        if repr(value) != text:
            texts[id(value)] = value, text
        return value

    return _exactly(data, unique_keys=unique_keys, parse_float=keep), texts


def dumps(value: Any, default: Callable[[Any], Any] | None = None, *, non_str_keys: bool = False) -> bytes:
    """The value as JSON; a `TypeError` for what JSON cannot hold, such as half of a character.

    With `non_str_keys`, whatever orjson takes as a key becomes text: dates, too, and not only numbers.
    """
    try:
        return orjson.dumps(value, default, orjson.OPT_NON_STR_KEYS if non_str_keys else None)
    except TypeError:
        try:
            text = json.dumps(value, default=default, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            return text.encode()
        except (ValueError, RecursionError) as error:
            raise TypeError(_in_words(error)) from None


def _as_many_texts(raw: bytes, value: Any) -> bool:
    """Whether the value, written again, has as many quotes as the text: of two equal keys it has lost one.

    Only an escaped quote can be written in two ways. Such a text is looked at more closely, and so is a deep one.
    """
    if type(value) is dict and b"\\" not in raw:
        kinds = [*map(type, value.values())]
        if _FLAT.issuperset(kinds):  # most rows: two quotes per key, and two per text
            return raw.count(b'"') == 2 * (len(kinds) + kinds.count(str))
    try:
        return rb"\u0022" not in raw and raw.count(b'"') == orjson.dumps(value).count(b'"')
    except TypeError:  # it reads deeper values than it writes
        return False


def _exactly(raw: bytes, *, unique_keys: bool = False, parse_float: Callable[[str], float] | None = None) -> Any:
    pairs = _unique if unique_keys else None
    try:
        text = raw.decode()
        value = json.loads(text, parse_constant=_refuse, parse_float=parse_float or _finite, object_pairs_hook=pairs)
        if _HALF_A_PAIR.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise JSONDecodeError(error.msg, error.doc, error.pos) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, half of a pair, too many digits, too deep
        refused = JSONDecodeError(_in_words(error), "", 0)
        refused.args = (refused.msg,)  # without a place: it is not known
        raise refused from None
    return value


def _in_words(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    if isinstance(error, UnicodeEncodeError):
        return "half of a character that takes two \\u escapes"
    if isinstance(error, RecursionError):
        return "nested too deep"
    text = str(error)
    return "an integer of more than 4300 digits" if "integer string conversion" in text else text


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError("a number is too large for a float")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:40]!r} stands twice in one object")
    return found
