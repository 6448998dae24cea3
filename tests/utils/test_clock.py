# SPDX-License-Identifier: Apache-2.0
"""Times in files are UTC, and of one form."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from reward_kit.utils.clock import now, now_to_the_millisecond


def test_both_forms_say_the_time_in_utc() -> None:
    before = datetime.now(UTC)
    told, precisely = now(), now_to_the_millisecond()
    after = datetime.now(UTC)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", precisely)
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(told) <= after
    assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(precisely) <= after
