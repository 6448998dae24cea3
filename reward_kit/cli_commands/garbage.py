# SPDX-License-Identifier: Apache-2.0
"""Fewer garbage collections while a command runs.

A command loads many modules, makes many objects, and hardly any reference cycles. What is in no cycle is freed at once,
as always. Left as it is, the search for cycles takes a fifth of a command's processor time. Its settings belong to the
process, so only the commands change them, never the library: a program that calls `reward_kit.evaluate` keeps its own.
"""

from __future__ import annotations

import atexit
import gc

__all__ = ["collect_at_the_end", "collect_rarely"]

_NEW_OBJECTS = 10_000
"""How many are made before the youngest are looked through; left alone, 700: a dozen records."""


def collect_rarely() -> None:
    """Look for cycles less often from here on, and not at all when the process ends.

    For the start of a command, which loads much and throws little away, and for its end, when Python would search all
    that was ever loaded twice more, although the system is about to take the memory back as a whole.
    """
    atexit.register(gc.freeze)
    youngest, *older = gc.get_threshold()
    if 0 < youngest < _NEW_OBJECTS:  # 0 means never, which is somebody's choice
        gc.set_threshold(_NEW_OBJECTS, *older)


def collect_at_the_end() -> None:
    """Look for cycles when the process ends, after all: DuckDB lists whatever is not freed by then as leaked."""
    atexit.unregister(gc.freeze)
