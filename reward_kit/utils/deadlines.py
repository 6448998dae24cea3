# SPDX-License-Identifier: Apache-2.0
"""Deadlines for many short calls: one timer that looks now and then, instead of a timer set and cancelled for each."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Deadlines"]

_LOOKS_PER_DEADLINE = 8
_MOST_OFTEN, _LEAST_OFTEN = 0.01, 0.25


class Deadlines:
    """Cancels a task that has been in a call for too long; again, should the call take no notice.

    To be used on one event loop.
    """

    def __init__(self, seconds: float) -> None:
        """Every call may take so many seconds, and up to an eighth of that more until it is noticed."""
        self._seconds = seconds
        self._interval = min(_LEAST_OFTEN, max(_MOST_OFTEN, seconds / _LOOKS_PER_DEADLINE))
        self._begun: dict[asyncio.Task[Any], float] = {}
        self._late: dict[asyncio.Task[Any], int] = {}
        """How often each was cancelled in the call it is in."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[Any]) -> None:
        """The task enters a call."""
        loop = task.get_loop()
        self._begun[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._interval, self._look, loop)

    def stop(self) -> None:
        """Look no more; the loop may be closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self, task: asyncio.Task[Any]) -> None:
        """The task has left its call, however it did."""
        self._begun.pop(task, None)
        if task in self._late:  # the call kept our cancellation to itself; nobody must take it for another's later
            self._take_back(task)

    def is_in_a_call(self, task: asyncio.Task[Any]) -> bool:
        """Whether the task has entered a call, and not left it."""
        return task in self._begun

    def is_ignored_by(self, task: asyncio.Task[Any]) -> bool:
        """Whether the call that the task is in was cancelled by us more than once, and goes on."""
        return self._late.get(task, 0) > 1

    def was_missed_by(self, task: asyncio.Task[Any]) -> bool:
        """Whether the cancellation that has just reached the task is ours; it is taken back, and counts for nothing."""
        return task in self._late and self._take_back(task) == 0

    def _take_back(self, task: asyncio.Task[Any]) -> int:
        """Take our cancellations of the task back; how many are left that are not ours."""
        for _ in range(self._late.pop(task, 0)):
            task.uncancel()
        return task.cancelling()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        latest = loop.time() - self._seconds
        for task, begun in list(self._begun.items()):
            if begun < latest:
                self._begun[task] = loop.time()
                self._late[task] = self._late.get(task, 0) + 1
                task.cancel()
        self._timer = loop.call_later(self._interval, self._look, loop) if self._begun else None
