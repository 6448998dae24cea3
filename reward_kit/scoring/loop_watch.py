# SPDX-License-Identifier: Apache-2.0
"""Noticing that something blocks the event loop, from a thread beside it: on the loop nobody could tell."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

__all__ = ["Blockage", "LoopWatch"]

_LOOKS_PER_PATIENCE = 4
_LIBRARY = str(Path(os.__file__).parent)


class Blockage(NamedTuple):
    """What holds the loop up."""

    task: asyncio.Task[Any] | None
    """The task whose turn does not end, where it is a task's."""
    seconds: float
    """How long the loop has not turned."""
    place: str
    """Where it is just now: a file and a line."""


class LoopWatch:
    """Tells, once each time, that the loop it was entered on has not turned for `patience` seconds."""

    def __init__(self, patience: float, tell: Callable[[Blockage], None]) -> None:
        """`tell` is called in a thread of its own, while the loop is held up."""
        self._patience = patience
        self._interval = patience / _LOOKS_PER_PATIENCE
        self._tell = tell
        self._turned = 0.0
        self._left = threading.Event()

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._turn()
        self._watching = threading.Thread(target=self._watch, name="reward-kit loop watch", daemon=True)
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._left.set()
        self._watching.join()

    def _turn(self) -> None:
        self._turned = time.monotonic()
        self._timer = self._loop.call_later(self._interval, self._turn)

    def _watch(self) -> None:
        reported = 0.0
        while not self._left.wait(self._interval):
            turned = self._turned
            seconds = time.monotonic() - turned
            frame = sys._current_frames().get(self._loop_thread)
            if seconds > self._patience and reported != turned and frame is not None:
                reported = turned
                self._tell(Blockage(asyncio.current_task(self._loop), seconds, _place(frame)))


def _place(frame: FrameType) -> str:
    """The innermost place that is not in a library, else the innermost there is."""
    inner: FrameType | None = frame
    while inner is not None and inner.f_code.co_filename.startswith((_LIBRARY, "<")):
        inner = inner.f_back
    shown = inner or frame
    return f"{shown.f_code.co_filename}, line {shown.f_lineno}"
