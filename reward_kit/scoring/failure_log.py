# SPDX-License-Identifier: Apache-2.0
"""What is logged of rewards that raise, and how a failure reads in a log."""

from __future__ import annotations

import logging

from reward_kit.models import Failure

__all__ = ["FailureLog", "traceback_lines"]

_log = logging.getLogger(__name__)

_MOST_PLACES = 10
"""Tracebacks that are logged as warnings in one run; every record has its own."""


class FailureLog:
    """Logs the traceback of the first failure of each kind at once, so that nobody waits for the end to see it."""

    def __init__(self) -> None:
        """Nothing has been logged yet."""
        self._places: set[str] = set()

    def note(self, failure: Failure) -> None:
        """Log the failure, if its reward raised: as a warning where this is a new place, else for `--verbose`."""
        if failure.traceback is None:
            return
        place = failure.traceback.rpartition("\n")[0]  # without the message, which may differ from answer to answer
        known = place in self._places or len(self._places) == _MOST_PLACES
        self._places.update(() if known else (place,))
        _log.log(logging.DEBUG if known else logging.WARNING, "%s%s", failure.message, traceback_lines(failure))


def traceback_lines(failure: Failure) -> str:
    """Where the reward raised, to follow a sentence in a log: lines of their own, or nothing."""
    return "" if failure.traceback is None else f"\n{failure.traceback}"
