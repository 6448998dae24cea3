"""Deadlines for many short calls: one timer that looks now and then, instead of a timer set and cancelled for each."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Deadlines"]

_LOOKS_A_DEADLINE = 8
_MOST_OFTEN, _LEAST_OFTEN = 0.01, 0.25


class Deadlines:
    """Cancels a task that has been in a call for too long. To be used on one event loop."""

    def __init__(self, seconds: float) -> None:
        """Every call may take so many seconds, and up to an eighth of that more until it is noticed."""
        self._seconds = seconds
        self._interval = min(_LEAST_OFTEN, max(_MOST_OFTEN, seconds / _LOOKS_A_DEADLINE))
        self._begun: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
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
        self._late.discard(task)

    def was_missed_by(self, task: asyncio.Task[Any]) -> bool:
        """Whether the cancellation that has just reached the task is ours; it is taken back, and counts for nothing."""
        if task not in self._late:
            return False
        self._late.discard(task)
        return task.uncancel() == 0

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        latest = loop.time() - self._seconds
        for task, begun in list(self._begun.items()):
            if begun < latest and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer = loop.call_later(self._interval, self._look, loop) if self._begun else None
