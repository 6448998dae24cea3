# SPDX-License-Identifier: Apache-2.0
"""The two queues of a run: work on its way into the generate stage, and rollouts on their way from there to score.

Workload ──▶ WorkQueue ──▶ generate ──▶ Handover ──▶ score
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reward_kit.errors import RewardKitError
from reward_kit.execution.owed import Work
from reward_kit.models import Rollout

__all__ = ["Handover", "Item", "WorkQueue"]


# ── into the generate stage ──────────────────────────────────────────────────────────────────────────────────────────


class WorkQueue:
    """Hands out what is owed, one sample at a time, in order."""

    def __init__(
        self,
        works: Iterator[Work],
        *,
        blocking: bool = False,
        backlog: bool = False,
        at_once: Callable[[], int] | None = None,
        ahead: int = 0,
    ) -> None:
        """`blocking` sources (a remote dataset) are read in a thread, so that waiting for them stalls nobody.

        From others, up to `ahead` pieces are read while nothing else is to be done, so that the next request need not
        wait for its row.

        With a `backlog`, rollouts that an earlier entry left unjudged are handed out even after `close`. More draws of
        a sample than can be asked for `at_once` are handed out apart, so that each is on disk as soon as it comes.
        """
        self._works = works
        self._at_once = at_once
        self._parts: deque[Work] = deque()
        self._ready: deque[Work] = deque()
        self._ahead = 0 if blocking else ahead
        self._reading_ahead = False
        self._blocking = blocking
        self._lock = asyncio.Lock()
        self._backlog = backlog
        self.closed: str | None = None
        """Why nothing more is generated although there was more, once that is so."""

    def close(self, reason: str) -> None:
        """Have nothing more generated. What was generated is scored as usual."""
        self.closed = self.closed or reason

    async def take(self) -> Work | None:
        """The next piece of work, or None when there is none left."""
        while self.closed is None or self._backlog:
            if self._parts:
                work: Work | None = self._parts.popleft()
            else:
                work = self._first_part(await self._read_elsewhere() if self._blocking else self._read_here())
            if work is None or self.closed is None or (work.rollouts and not work.regrouped):
                return work
            await asyncio.sleep(0)  # others may have something to do while the rest is looked through
        return None

    def _first_part(self, work: Work | None) -> Work | None:
        """The work; where it has more draws than can be asked for at once, a part of it, and the rest for the next."""
        most = self._at_once() if self._at_once is not None else None
        if work is not None and most is not None and len(work.draws) > most:
            work.draws, *rest = (work.draws[start : start + most] for start in range(0, len(work.draws), most))
            self._parts.extend(Work(work.sample, work.content, draws) for draws in rest)
        return work

    def _read_here(self) -> Work | None:
        if self._ahead and not self._reading_ahead:
            self._reading_ahead = True
            asyncio.get_running_loop().call_soon(self._read_ahead)
        return self._ready.popleft() if self._ready else next(self._works, None)

    async def _read_elsewhere(self) -> Work | None:
        async with self._lock:
            return await asyncio.to_thread(next, self._works, None)

    def _read_ahead(self) -> None:
        self._reading_ahead = False
        try:
            while len(self._ready) < self._ahead and (work := next(self._works, None)) is not None:
                self._ready.append(work)
        except RewardKitError as error:  # a bad row: told when its turn comes
            self._works = _raising(error)


def _raising(error: RewardKitError) -> Iterator[Work]:
    raise error
    yield  # makes it an iterator, which raises when it is asked


# ── from generate to score ───────────────────────────────────────────────────────────────────────────────────────────


class Item(NamedTuple):
    """One rollout, or all rollouts of a sample."""

    rollouts: list[Rollout]
    content: str
    """The digest of their sample's content."""


_MOST_WOKEN = 8
"""The most waiting tasks that are woken at a time. A task that never waits takes all items by itself, and waking others
would be in vain."""


class Handover:
    """A queue between the tasks of two stages, on one event loop.

    Giving never waits, because what is given is on disk and somebody has to take it; whoever gives asks for room before
    making more, and so a slow reward slows generation down instead of filling memory.
    """

    def __init__(self, capacity: int) -> None:
        """Ask makers to wait while `capacity` items are on their way, until half of them are taken."""
        self._capacity, self._half = capacity, capacity // 2
        self._items: deque[Item] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._woken = 0
        self._room = asyncio.Event()
        self._room.set()
        self._ended = self._dropped = False

    def drop(self) -> None:
        """Let go of all items, and of those that will be given: they are on disk, and stay owed."""
        self._dropped = True
        self._items.clear()
        self._room.set()

    def give(self, item: Item) -> None:
        """Put an item into the queue, and wake a task that waits for one. Never waits itself."""
        if self._dropped:
            return
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
