# SPDX-License-Identifier: Apache-2.0
"""Whether a reward works at all: told by the first verdicts of a run, so that no more is paid for one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from reward_kit.models import Failure, Record

__all__ = ["FirstVerdicts"]

_MANY: Final = 20
"""Answers that fail alike before it is clear that the others would, too."""
_VALUES: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\b\w*\d\w*\b|[-+]?\d[\d.,]*")
"""What differs between two messages that say the same: what is quoted, and whatever has a digit."""
_LONGEST: Final = 300


class FirstVerdicts:
    """Looks at the verdicts of a run until one of them is another than the first. Nothing is looked at after that."""

    def __init__(self, stop: Callable[[str], None], expects: Callable[[Record], bool]) -> None:
        """`stop` is told why; a verdict on a record that nobody `expects` one for is no sign of anything."""
        self._stop, self._expects = stop, expects
        self._alike = 0
        self._way: tuple[str, str] | None = None
        self.done = False
        """Whether there is nothing left to look for."""

    def see(self, record: Record) -> None:
        """Take account of a verdict. An answer that could not be had is none."""
        failure = record.failure
        if self.done or record.rollout.failure is not None or (failure is not None and not self._expects(record)):
            return
        way = None if failure is None else _way_of(failure)
        if failure is None or self._way not in {None, way}:
            self.done = True
            return
        self._way = way
        self._alike += 1
        if self._alike == _MANY:
            self.done = True
            self._stop(_sentence(failure))


def _way_of(failure: Failure) -> tuple[str, str]:
    return failure.type, _VALUES.sub("…", failure.message)


def _sentence(failure: Failure) -> str:
    message = " ".join(failure.message.split())
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return (
        f"The first {_MANY} answers could not be judged, all for the same reason, such as: {message.rstrip('.')}. "
        "No more is asked. Mend the reward, or what it needs, then run the same again: answers that are here are "
        "judged, and not asked for again. With `keep_going` it does not stop here."
    )
