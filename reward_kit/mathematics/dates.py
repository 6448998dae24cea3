"""Dates as people write them: a day and a month, with or without a year."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Date", "read_date"]

_MONTHS: Final = "january february march april may june july august september october november december".split()
_MONTH: Final = r"(?P<month>[A-Za-z]{3,9})\.?"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,?\s+(?P<year>\d{4}))?"
_WEEKDAY: Final = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"
_FORMS: Final = (
    re.compile(rf"{_WEEKDAY}{_MONTH}\s+{_DAY}{_YEAR}", re.IGNORECASE),
    re.compile(rf"{_WEEKDAY}(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}", re.IGNORECASE),
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})"),
)
_LONGEST: Final = 60


class Date(NamedTuple):
    """A date; the year may be left out."""

    month: int
    day: int
    year: int | None


def read_date(text: str) -> Date | None:
    """The date that `text` is; `None` if it is anything else. Forms that countries read differently are not read."""
    bare = re.sub(r"\\(?:text|mbox)\s?\{([^{}]*)\}", r"\1", text[: _LONGEST + 1]).strip(" $.{}")
    if len(text) > _LONGEST:
        return None
    for form in _FORMS:
        match = form.fullmatch(bare)
        month = _month(match["month"]) if match else None
        if match and month is not None and 1 <= int(match["day"]) <= 31:
            return Date(month, int(match["day"]), int(match["year"]) if match["year"] else None)
    return None


def _month(name: str) -> int | None:
    if name.isdigit():
        return int(name) if 1 <= int(name) <= 12 else None
    found = [index for index, month in enumerate(_MONTHS, 1) if month.startswith(name.lower())]
    return found[0] if len(found) == 1 else None
