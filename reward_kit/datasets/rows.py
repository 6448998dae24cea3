# SPDX-License-Identifier: Apache-2.0
"""Rows as they come out of a source, before anybody has interpreted them, and what becomes of bad ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel

from reward_kit.errors import DatasetError, ItemError
from reward_kit.models import Message
from reward_kit.utils.exact_json import Texts

__all__ = [
    "BadRow", "BadRows", "Columns", "Origin", "Row", "Written", "as_json", "as_python", "as_table", "as_told",
    "as_written", "cells", "check_depth", "plain", "text_of",
]  # fmt: skip

Columns = dict[str, Any]
"""A row's columns by name."""

_REASONS_KEPT = 5
"""How many skipped rows are remembered with their reason; the others are only counted."""


class Origin(NamedTuple):
    """Where rows come from, as a message names it."""

    name: str
    """A file, or the name of a dataset."""
    unit: str = "line"
    """What its rows are counted in: `line` or `row`, from 1."""


Written = Callable[[Any], str | None]
"""How the source of a row writes one of its values, where Python's `str` would write it otherwise; else None."""


def as_python(_: Any) -> str | None:
    """For sources that are text, or objects of Python."""
    return None


def as_json(value: Any) -> str | None:
    """For JSON whose floats are all written as Python writes them."""
    return ("true" if value else "false") if isinstance(value, bool) else None


def as_table(value: Any) -> str | None:
    """For tables, whose column of whole numbers becomes one of floats where a value is missing: 4.0 may have been 4."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_IN_A_FLOAT:
        return str(int(value))
    return None


def as_told(text: str | None) -> Written:
    """For a row of which it is known how its ground truth is written; None: as Python writes it."""
    return as_python if text is None else lambda _: text


def text_of(truth: Any, written: Written) -> str | None:
    """How a ground truth is written that is a number or bool, where Python's `str` would write it otherwise."""
    text = written(truth) if isinstance(truth, (bool, int, float)) else None
    return None if text == str(truth) else text


def as_written(texts: Texts) -> Written:
    """For JSON with floats that Python writes otherwise."""

    def written(value: Any) -> str | None:
        known = texts.get(id(value))
        return as_json(value) if known is None else known[1]

    return written


_EXACT_IN_A_FLOAT = 2**53


class Row(NamedTuple):
    """One row, and the place to look for it."""

    origin: Origin
    number: int
    columns: dict[str, Any]
    written: Written = as_python

    @property
    def where(self) -> str:
        """Where the row is, for messages: the file's name, and the number of the line or row in it."""
        return f"{self.origin.name!r}, {self.origin.unit} {self.number}"


class BadRow(ItemError):
    """A row cannot become a sample. In a dataset `BadRows` decides what follows; elsewhere, whoever reads the row."""


class BadRows:
    """What a bad row costs: the run, or only itself."""

    def __init__(self, *, skip: bool) -> None:
        self.skip = skip
        self.count = 0
        """Rows skipped so far."""
        self.reasons: list[str] = []
        """Place and reason of the first of them."""

    def report(self, origin: Origin, number: int, reason: str) -> None:
        """Raise a `DatasetError` that names the place and the reason, or count the row."""
        sentence = f"{origin.name!r}, {origin.unit} {number}: {reason}"
        if not self.skip:
            raise DatasetError(f"{sentence}. Fix the row, or set `dataset.on_bad_row=skip` to leave such rows out.")
        self.count += 1
        if len(self.reasons) < _REASONS_KEPT:
            self.reasons.append(sentence)


_DEEPEST = 100
"""Levels of lists and objects in a row; deeper ones cannot be written down again."""


def check_depth(value: Any, left: int = _DEEPEST) -> None:
    """Refuse a row that is deeper than can be written."""
    if not isinstance(value, (dict, list)):
        return
    if not left:
        raise BadRow(f"it is more than {_DEEPEST} levels deep; make it flatter")
    for item in value.values() if isinstance(value, dict) else value:
        check_depth(item, left - 1)


def plain(row: Mapping[str, Any]) -> Columns:
    """A row that a program gives, as a copy. It holds what JSON holds, or is refused: nothing in it changes its type.

    So a reward sees the same values at once, in a second phase, and when the run is resumed.
    """
    return _copied_row(row, _refused)


def cells(row: Mapping[str, Any], *, tuples: bool = False) -> Columns:
    """A row of a table, as a copy in JSON's own types.

    What stands for a missing value (NaN, NaT, NA) becomes None, numpy's numbers become Python's, its arrays lists, and
    dates, decimals and bytes their text. With `tuples` they become lists: so Arrow gives the pairs of its maps.
    """
    return _copied_row(row, partial(_from_cell, tuples=tuples))


_Unusual = Callable[[Any, int], Any]
"""What becomes of a value that JSON has no type for; it is given how much deeper it may go."""


def _copied_row(row: Mapping[str, Any], unusual: _Unusual) -> Columns:
    columns: Columns = {}
    for name, value in row.items():
        if type(value) is type(name) is str and value.isascii():  # as it mostly is
            columns[name] = value
            continue
        try:
            column = _name(name) if unusual is _refused else str(name)
            columns[column] = _copied(value, _DEEPEST - 1, unusual)
        except _NotPlain as problem:
            raise BadRow(f"column {name!r} holds {problem}") from None
    return columns


class _NotPlain(Exception):
    """What is found in a column that JSON cannot express; said so that it follows `holds`."""


def _copied(value: Any, left: int, unusual: _Unusual) -> Any:
    kind = type(value)
    if value is None or kind is bool or (kind is int and -_WORD < value < _WORD) or (kind is str and value.isascii()):
        return value
    if kind is str or kind is int:
        return _writable(value)
    if kind is float and math.isfinite(value):
        return value
    if kind is not dict and kind is not list:
        return unusual(value, left)
    if not left:
        raise BadRow(f"it is more than {_DEEPEST} levels deep; make it flatter")
    if kind is list:
        return [_copied(item, left - 1, unusual) for item in value]
    return {_name(name): _copied(item, left - 1, unusual) for name, item in value.items()}


_WORD = 1 << 63


def _writable(value: str | int) -> str | int:
    """The same, unless no file can hold it: such a text, or an integer that Python neither writes nor reads."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise _NotPlain("half of a character (a surrogate), which no file can hold; give whole characters") from None
    except ValueError:
        raise _NotPlain("an integer of more than 4300 digits; give it as text") from None
    return value


def _name(name: Any) -> str:
    if isinstance(name, str):
        return str(name)
    raise _NotPlain(f"a key that is {_a(type(name).__name__)} ({name!r}); give keys that are text")


def _refused(value: Any, left: int) -> Any:
    """A program's value, where its type would be lost on the way to a file and back."""
    if isinstance(value, Message):
        return _copied(value.model_dump(exclude_none=True), left, _refused)
    fits = (words for kinds, words in _INSTEAD if isinstance(value, kinds))
    instead = "its `.tolist()`" if type(value).__module__ == "numpy" else next(fits, _WHAT_JSON_HOLDS)
    given = repr(value) if type(value) is float else _a(type(value).__name__)
    raise _NotPlain(f"{given}, which a file cannot hold as it is; give {instead}")


def _a(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


_WHAT_JSON_HOLDS = "text, a number, True, False, None, a list or a dict"
_INSTEAD: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Enum, "its `.value`"),
    (tuple, "a list, and make the tuple in the reward"),
    ((set, frozenset), "a list, and make the set in the reward"),
    ((datetime, date, time), "its text, `.isoformat()`"),
    ((Decimal, UUID), "its text, `str(…)`"),
    ((bytes, bytearray), "text, `.decode()`"),
    (BaseModel, "its `.model_dump()`"),
    (float, "None where a value is missing, else a float that is a number"),
    (str, "plain text, `str(…)`"),
    (int, "a plain integer, `int(…)`"),
    (Mapping, "a plain dict, `dict(…)`"),
)
"""What to give in the place of values of some types; the first that fits. Subclasses count: numpy's float64 is one."""


def _from_cell(value: Any, left: int, *, tuples: bool) -> Any:
    if _is_missing(value):
        return None
    for kinds, text_of in _AS_TEXT:
        if isinstance(value, kinds):
            return text_of(value)
    inner = value
    if tuples and isinstance(value, tuple):
        inner = list(value)
    elif isinstance(value, Mapping):  # a row inside a row, of whatever class the table has for it
        inner = dict(value)
    elif type(value).__module__ == "numpy":
        inner = value.tolist()
    return _refused(value, left) if inner is value else _copied(inner, left, partial(_from_cell, tuples=tuples))


def _is_missing(value: Any) -> bool:
    """Whether it stands for no value: JSON has no NaN, and pandas has NaN, NaT and NA."""
    kind = type(value)
    if kind is float:
        return not math.isfinite(value)
    return kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas.")


def _text(value: bytes | bytearray) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise _NotPlain("bytes that are not text; drop or convert them with a preprocess") from None


_AS_TEXT: tuple[tuple[tuple[type, ...], Callable[[Any], str]], ...] = (
    ((datetime, date, time), lambda moment: str(moment.isoformat())),
    ((Decimal, UUID), str),
    ((bytes, bytearray), _text),
)
"""What a table's cell holds that JSON has no type for, and that is written as text."""
