"""The time of day as files say it: UTC, ISO 8601."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["now", "now_to_the_millisecond"]


def now() -> str:
    """For manifests and summaries: `2026-05-01T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def now_to_the_millisecond() -> str:
    """For answers and commands: `2026-05-01T12:00:00.123+00:00`."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}+00:00"


@lru_cache(maxsize=1)  # many answers come within a second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
