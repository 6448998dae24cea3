"""Doing something once, at the end of the event loop's current turn, however often it is asked for.

A write costs far more than the bytes in it. Under load one turn of the loop deals with many answers, and what they all
want written goes in one write; when little is going on, a turn holds one, and it is written at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["EndOfTurn"]


class EndOfTurn:
    """An action that waits for the end of the turn; where no loop is running, it is done at once."""

    __slots__ = ("_action", "_asked")

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._asked = False

    def ask(self) -> None:
        """Have the action done by the end of this turn."""
        if self._asked:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._action()
            return
        self._asked = True
        loop.call_soon(self._act)

    def _act(self) -> None:
        self._asked = False
        self._action()
