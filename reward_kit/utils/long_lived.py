"""Sparing the garbage collector what will not become garbage.

A program that has loaded its libraries holds some hundred thousand objects that stay. A collection looks at all of
them, takes tenths of a second, and holds up everything that waits for the process meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["long_lived_set_aside"]

_MOST_OF_THE_INTERPRETER = 2_000
"""Python 3.12 sets some hundred objects of its own aside when it starts."""


@contextmanager
def long_lived_set_aside() -> Iterator[None]:
    """While this is entered, collections look only at what was made since; afterwards at everything again."""
    if gc.get_freeze_count() > _MOST_OF_THE_INTERPRETER:  # whoever did this already also decides when it ends
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
