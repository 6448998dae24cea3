# SPDX-License-Identifier: Apache-2.0
"""Rows as they come out of a source, before anybody has interpreted them, and what becomes of bad ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel

from reward_kit.errors import DatasetError, ItemError

__all__ = ["BadRow", "BadRows", "Columns", "Origin", "Row", "check_depth", "plain"]

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


class Row(NamedTuple):
    """One row, and the place to look for it."""

    origin: Origin
    number: int
    columns: dict[str, Any]

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


def plain(value: Any, left: int = _DEEPEST) -> Any:
    """`value` in JSON's own types, so that a reward sees the same thing before and after it has been on disk."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None  # JSON has no NaN: pandas' missing value is a null
    if not left:
        raise BadRow(f"it is more than {_DEEPEST} levels deep; make it flatter")
    if isinstance(value, Mapping):
        return {str(name): plain(item, left - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, left - 1) for item in value]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return plain(value.model_dump(exclude_none=True))
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return _text(bytes(value))
    if isinstance(value, (str, bool, int, float)):  # their subclasses: enums, numpy's float64
        return plain(next(base for base in (str, bool, int, float) if isinstance(value, base))(value))
    if type(value).__module__ == "numpy":
        return plain(value.tolist())
    raise BadRow(f"it holds a {type(value).__name__}, which JSON cannot express; drop or convert it with a preprocess")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadRow("it holds bytes that are not text; drop or convert them with a preprocess") from None
