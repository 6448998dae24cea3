# SPDX-License-Identifier: Apache-2.0
"""The time of day as files say it: UTC, ISO 8601."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["now", "now_to_the_millisecond"]


def now() -> str:
    """For manifests and summaries: `2026-05-01T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def now_to_the_millisecond() -> str:
    """For answers and commands: `2026-05-01T12:00:00.123+00:00`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
