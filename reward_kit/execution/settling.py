"""What a stage has made is dealt with at the end of the event loop's turn, all of it together.

When many answers arrive at once, the next requests go out first and the bookkeeping follows while their answers are
awaited; and one write takes all lines. When one answer arrives, it is dealt with at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reward_kit.utils.end_of_turn import EndOfTurn

__all__ = ["Settling"]

T = TypeVar("T")

_MOST_UNSETTLED = 128


class Settling(Generic[T]):
    """Collects things, and has them dealt with by the end of the turn."""

    def __init__(self, deal: Callable[[list[T]], None]) -> None:
        """`deal` is given everything that came during a turn."""
        self._deal = deal
        self._things: list[T] = []
        self._end_of_turn = EndOfTurn(self._deal_quietly)
        self._failed: Exception | None = None

    def add(self, thing: T) -> None:
        """Have it dealt with. Raises what went wrong with earlier things: nobody was there to be told then."""
        if self._failed is not None:
            raise self._failed
        things = self._things
        if not things:
            self._end_of_turn.ask()
        things.append(thing)
        if len(things) >= _MOST_UNSETTLED:  # a turn may be long where nothing has to be waited for
            self.settle()

    def settle(self) -> None:
        """Deal with what is left now."""
        if self._failed is not None:
            raise self._failed
        things, self._things = self._things, []
        if things:
            self._deal(things)

    def _deal_quietly(self) -> None:
        try:
            self.settle()
        except Exception as error:  # noqa: BLE001 - kept for whoever adds or settles next, bug or not
            self._failed = error
