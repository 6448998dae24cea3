# SPDX-License-Identifier: Apache-2.0
"""Dates and times of day: `March 3rd, 2024`, `2024-03-03`, `3:30 p.m.`, `15:30`, `7 o'clock`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Date", "Time", "read_date", "read_time", "same_time"]


# ── dates ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
_LONGEST_DATE: Final = 60


class Date(NamedTuple):
    """A date; the year may be left out."""

    month: int
    day: int
    year: int | None


def read_date(text: str) -> Date | None:
    """The date that `text` is; `None` if it is anything else. Forms that countries read differently are not read."""
    bare = re.sub(r"\\(?:text|mbox)\s?\{([^{}]*)\}", r"\1", text[: _LONGEST_DATE + 1]).strip(" $.{}")
    if len(text) > _LONGEST_DATE:
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


# ── times of day ─────────────────────────────────────────────────────────────────────────────────────────────────────


_TIME: Final = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?\s{0,2}"
    r"(?P<half>[ap]\.?\s?m\.?|o'clock|noon|midnight)?(?:\s+in\s+the\s+(?P<part>morning|afternoon|evening))?",
    re.IGNORECASE,
)
_TEXT: Final = re.compile(r"\\(?:text|mbox|mathrm)\s?\{([^{}]*)\}")
_LONGEST_TIME: Final = 40


class Time(NamedTuple):
    """A time of day as written."""

    hour: int
    minute: int
    second: int
    half: str
    """"a" before noon, "p" after it, empty where nothing says which."""


_LED_TO: Final = re.compile(r"^\s*(?:(?:the\s+)?time\s+is|it\s+is|at)\s+(?=\d|half|quarter)", re.IGNORECASE)
_HOURS: Final = {
    word: hour
    for hour, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1)
}
_MINUTES: Final = _HOURS | {"quarter": 15, "a quarter": 15, "half": 30, "twenty": 20, "twenty-five": 25, "fifteen": 15}
_SPOKEN: Final = re.compile(
    r"(?P<count>(?:a\s)?quarter|half|twenty-five|[a-z]+|\d{1,2})(?:\sminutes?)?\s(?P<way>past|after|to|before|till)\s"
    r"(?P<hour>[a-z]+|\d{1,2})(?:\so'clock)?(?:\s?(?P<half>[ap])\.?m\.?)?"
)
_NAMED: Final = {"noon": Time(12, 0, 0, "p"), "midday": Time(12, 0, 0, "p"), "midnight": Time(12, 0, 0, "a")}


def read_time(text: str) -> Time | None:
    """The time that `text` is; `None` if it is anything else, a bare number too."""
    if len(text) <= _LONGEST_TIME and (named := _NAMED.get(text.strip(" .").lower())) is not None:
        return named
    if len(text) > _LONGEST_TIME:
        return None
    if text[:1].isalpha():
        text = _LED_TO.sub("", text)
    if " " in text and (" past " in text or " to " in text or " after " in text or " before " in text):
        spoken = _SPOKEN.fullmatch(text.strip(" .").lower())
        return _from_spoken(spoken) if spoken is not None else None
    if not text.lstrip(" ${")[:1].isdigit():
        return None
    bare = _TEXT.sub(r" \1 ", text.replace("\\ ", " ").replace("~", " ").replace("\\,", " ")).strip(" $.{}")
    match = _TIME.fullmatch(re.sub(r"\s+", " ", bare))
    if match is None or not (match["minute"] or match["half"] or match["part"]) or int(match["hour"]) > 24:
        return None
    marker = (match["half"] or "").lower()
    part = {"morning": "a", "midnight": "a", "noon": "p", "afternoon": "p", "evening": "p"}
    half = part.get((match["part"] or marker).lower(), marker[:1] if marker[:1] in ("a", "p") else "")
    return Time(int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0), half)


def _from_spoken(match: re.Match[str]) -> Time | None:
    """Half past four, ten to five; `None` where there are no such minutes."""
    count = _MINUTES.get(match["count"]) or (int(match["count"]) if match["count"].isdigit() else None)
    hour = _HOURS.get(match["hour"]) or (int(match["hour"]) if match["hour"].isdigit() else None)
    if (
        count is None
        or hour is None
        or not 0 < count < 60
        or hour > 24
        or (match["count"] == "half" and match["way"] == "to")
    ):
        return None
    half = (match["half"] or "")[:1]
    if match["way"] in ("past", "after"):
        return Time(hour, count, 0, half)
    return Time(hour - 1 or 12, 60 - count, 0, half)


def same_time(gold: Time, answer: Time) -> bool | None:
    """Whether two times are the same; `None` where neither says which half of the day it is in, and they differ."""
    if not gold.half and not answer.half:
        return True if gold == answer else None
    if gold[1:3] != answer[1:3]:
        return False
    if gold.half and answer.half:
        return _of_day(gold) == _of_day(answer)
    return gold.hour == answer.hour or _of_day(gold) == _of_day(answer)


def _of_day(time: Time) -> int:
    return time.hour if not time.half else time.hour % 12 + 12 * (time.half == "p")
