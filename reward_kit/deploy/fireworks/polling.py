# SPDX-License-Identifier: Apache-2.0
"""Waiting for something at Fireworks to change: often at first, seldom later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["states"]

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_GROWTH = 1.5


def states(
    ask: Callable[[], dict[str, Any]], *, timeout: float | None = None, what: str = "It"
) -> Iterator[dict[str, Any]]:
    """What `ask` says, again and again, until the caller has seen enough, or a `TimeoutError`."""
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = _FIRST_PAUSE
    while True:
        yield ask()
        if deadline is not None and time.monotonic() + pause > deadline:
            raise TimeoutError(f"{what} takes longer than {timeout:g} s. It goes on at Fireworks; ask again later.")
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * _GROWTH)
