"""What is on its way from generate to score.

Giving never waits, because what is given is on disk and somebody has to take it; whoever gives asks for room before
making more, and so a slow reward slows generation down instead of filling memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import NamedTuple

from reward_kit.models import Rollout
from reward_kit.storage.sample_text import SampleText

__all__ = ["Handover", "Item"]


class Item(NamedTuple):
    """One rollout, or all rollouts of a sample."""

    rollouts: list[Rollout]
    text: SampleText
    """Their sample, as their lines will tell it."""


_MOST_WOKEN = 8
"""Takers on their way to their item at a time. One whose work waits for nothing takes all there is, and others would
have been woken in vain."""


class Handover:
    """A queue between the hands of two stages, on one event loop."""

    def __init__(self, capacity: int) -> None:
        """Ask makers to wait while `capacity` items are on their way, until half of them are taken."""
        self._capacity, self._half = capacity, capacity // 2
        self._items: deque[Item] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._woken = 0
        self._room = asyncio.Event()
        self._room.set()
        self._ended = False

    def give(self, item: Item) -> None:
        """Hand an item on."""
        self._items.append(item)
        if len(self._items) >= self._capacity:
            self._room.clear()
        self._wake_one()

    def end(self) -> None:
        """Nothing more will be given."""
        self._ended = True
        while self._takers:
            self._wake(self._takers.popleft())

    async def take(self) -> Item | None:
        """The next item; None when nothing more will come."""
        while (item := self.take_at_once()) is None:
            if self._ended:
                return None
            await self._wait()
        return item

    def take_at_once(self) -> Item | None:
        """The next item; None where one would have to wait for it."""
        items = self._items
        if not items:
            return None
        item = items.popleft()
        if len(items) == self._half:
            self._room.set()
        if items and self._takers:
            self._wake_one()
        return item

    @property
    def is_full(self) -> bool:
        """Whether makers are asked to wait."""
        return not self._room.is_set()

    async def room(self) -> None:
        """Come back when there is room for more."""
        await self._room.wait()

    async def _wait(self) -> None:
        taker = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self._takers.remove(taker)
            if taker.done() and not taker.cancelled():
                self._woken -= 1
            if self._items:  # this one may have been woken for an item; somebody else must be
                self._wake_one()
            raise
        self._woken -= 1

    def _wake_one(self) -> None:
        while self._takers and self._woken < _MOST_WOKEN:
            if self._wake(self._takers.popleft()):
                return

    def _wake(self, taker: asyncio.Future[None]) -> bool:
        if taker.done():
            return False
        self._woken += 1
        taker.set_result(None)
        return True
