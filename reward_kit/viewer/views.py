# SPDX-License-Identifier: Apache-2.0
"""The state of a table as an address says it: what a row is, the order, the filters, the search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from reward_kit.viewer.problems import WrongRequest

__all__ = ["Condition", "Operator", "View", "read_number", "read_view"]

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge", "has", "empty", "filled"]
_OPERATORS: tuple[Operator, ...] = get_args(Operator)
_MOST_CONDITIONS = 32
_MOST_TEXT = 10_000
"""Characters of one value that is filtered or searched for."""


class Condition(NamedTuple):
    """A filter: a column, an operator and a value."""

    column: str
    operator: Operator
    value: str


class View(NamedTuple):
    """What is shown, in which order. Equal ones show the same rows of the same files."""

    by: Literal["sample", "record"] = "sample"
    sort: str | None = None
    descending: bool = False
    search: str = ""
    where: tuple[Condition, ...] = ()
    contested: bool = False


class Parameters(Protocol):
    """The parameters of an address, as Starlette gives them."""

    def get(self, key: str, /) -> str | None:
        """The last value of a name."""

    def getlist(self, key: str, /) -> Sequence[str]:
        """All values of a name."""


def read_view(parameters: Parameters) -> View:
    """The view that the parameters of an address name; what is not said is as a view is by itself."""
    by = parameters.get("by") or "sample"
    if by not in ("sample", "record"):
        raise WrongRequest(f"A row is a sample or a record, not a {by[:40]!r}. Write by=sample or by=record.")
    sort = parameters.get("sort") or ""
    conditions = parameters.getlist("where")
    if len(conditions) > _MOST_CONDITIONS:
        raise WrongRequest(f"There are {len(conditions)} filters; {_MOST_CONDITIONS} is the most. Remove some.")
    return View(
        by="record" if by == "record" else "sample",
        sort=sort.removeprefix("-") or None,
        descending=sort.startswith("-"),
        search=_bounded((parameters.get("q") or "").strip()),
        where=tuple(map(_condition, conditions)),
        contested=parameters.get("contested") in ("1", "true"),
    )


def _condition(text: str) -> Condition:
    """`COLUMN:OP:VALUE`; a column's own name may hold colons."""
    parts = text.split(":")
    for place in range(1, len(parts)):
        operator = next((known for known in _OPERATORS if known == parts[place]), None)
        if operator is not None:
            return Condition(":".join(parts[:place]), operator, _bounded(":".join(parts[place + 1 :])))
    raise WrongRequest(f"{text[:80]!r} is not a filter. Write COLUMN:OP:VALUE, with OP one of {', '.join(_OPERATORS)}.")


def _bounded(text: str) -> str:
    if len(text) > _MOST_TEXT:
        raise WrongRequest(f"A text of {len(text):,} characters is too long to look for. Use a part of it.")
    return text


def read_number(parameters: Parameters, name: str, default: int, most: int) -> int:
    """A whole number from 0 to `most` among the parameters."""
    text = parameters.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        raise WrongRequest(f"{name}={text[:40]!r} is not a number from 0 to {most:,}. Correct it.")
    return min(int(text), most)
