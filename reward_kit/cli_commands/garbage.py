# SPDX-License-Identifier: Apache-2.0
"""Fewer garbage collections while a command runs.

A run makes many objects, and hardly any reference cycles. What is in no cycle is freed at once, as always. Left as it
is, the search for cycles takes a tenth of a run's processor time, and now and then it goes through everything that was
ever loaded, while all else waits. The settings belong to the process, so only the commands change them, never the
library: a program that calls `reward_kit.evaluate` keeps its own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
from collections.abc import Iterator

__all__ = ["collect_rarely", "rare_collections"]

_NEW_OBJECTS = 10_000
"""How many are made before the youngest are looked through; left alone, 700: a dozen records."""
_MOST_OF_THE_INTERPRETER = 2_000
"""Python 3.12 sets some hundred objects of its own aside when it starts."""


def collect_rarely() -> None:
    """Look for cycles less often from here on, and not at all when the process ends.

    For the start of a command, which loads much and throws little away, and for its end, when Python would search all
    that was ever loaded twice more, although the system is about to take the memory back as a whole.
    """
    atexit.register(gc.freeze)
    youngest, *older = gc.get_threshold()
    if 0 < youngest < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *older)


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Inside the block, search for cycles rarely, and only among objects made since its start; afterwards as before."""
    with contextlib.ExitStack() as undo:
        youngest, *older = gc.get_threshold()
        if 0 < youngest < _NEW_OBJECTS:  # 0 means never, which is somebody's choice
            gc.set_threshold(_NEW_OBJECTS, *older)
            undo.callback(gc.set_threshold, youngest, *older)
        if gc.get_freeze_count() <= _MOST_OF_THE_INTERPRETER:  # else whoever did this already decides when it ends
            gc.freeze()
            undo.callback(gc.unfreeze)
        yield
