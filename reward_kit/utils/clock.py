# SPDX-License-Identifier: Apache-2.0
"""The time of day as files say it: UTC, ISO 8601."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["age_in_words", "moment", "now", "now_to_the_millisecond"]


def now() -> str:
    """For manifests and summaries: `2026-05-01T12:00:00Z`."""
    return moment(time.time())


def moment(seconds: float) -> str:
    """The same of a time in Unix seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def age_in_words(since: str) -> str:
    """How long ago a moment was: `3 days`, `less than a minute`."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if count := int(seconds // length):
            return f"{count:,} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def now_to_the_millisecond() -> str:
    """For answers and commands: `2026-05-01T12:00:00.123+00:00`."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}+00:00"


@lru_cache(maxsize=1)  # many answers come within one
def _second(seconds: int) -> str:
    return moment(seconds).removesuffix("Z")
