"""Looking for reference cycles less often while much is made and little of it is cyclic."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["rare_collections"]

_NEW_OBJECTS = 10_000
"""Python looks after 700 new objects: a dozen records, and a tenth of a run's processor time."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Within the block, let more objects be made before the youngest are looked through. Frees nothing later but
    cycles; what is not part of one goes at once, as ever."""
    youngest, *older = gc.get_threshold()
    if 0 < youngest < _NEW_OBJECTS:  # 0 means never, which is somebody's choice
        gc.set_threshold(_NEW_OBJECTS, *older)
    try:
        yield
    finally:
        gc.set_threshold(youngest, *older)
