# SPDX-License-Identifier: Apache-2.0
"""Collecting during one turn of the event loop, and dealing with all of it once.

A write costs far more than the bytes in it. Under load one turn of the loop brings many answers, and what they all want
written goes in one write; when little is going on, a turn brings one, and it is written at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

__all__ = ["Batcher"]

T = TypeVar("T")

_MOST_WAITING = 128


class Batcher(Generic[T]):
    """Collects things and has them dealt with together, by the end of the turn; where no loop is running, at once."""

    __slots__ = ("_batches", "_deal", "_failed", "_things")

    def __init__(self, deal: Callable[[list[T]], None]) -> None:
        """`deal` is given what came since it was called last, in order."""
        self._deal = deal
        self._things: list[T] = []
        self._batches = 0
        self._failed: Exception | None = None

    def add(self, thing: T) -> None:
        """Have it dealt with soon. Where an earlier batch failed, its error is raised."""
        if self._failed is not None:
            raise self._failed
        things = self._things
        things.append(thing)
        if len(things) == 1:
            self._flush_at_the_end_of_this_turn()
        elif len(things) >= _MOST_WAITING:  # a turn may be long where nothing has to be waited for
            self.flush()

    def flush(self) -> None:
        """Deal now with what is waiting. Where an earlier batch failed, its error is raised."""
        if self._failed is not None:
            raise self._failed
        things, self._things = self._things, []
        if things:
            try:
                self._deal(things)
            except (
                Exception
            ) as error:  # bug or not: whoever adds, waits or flushes next must not go on as if it were done
                self._failed = error
                raise
            self._batches += 1

    @types.coroutine
    def dealt(self) -> Generator[None, None, None]:
        """Come back when all that was added before has been dealt with. Where that failed, its error is raised."""
        batches = self._batches
        while self._things and self._batches == batches and self._failed is None:
            yield  # until the loop's next turn, as `asyncio.sleep(0)`, which costs three times as much
        if self._failed is not None:
            raise self._failed

    def _flush_at_the_end_of_this_turn(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        loop.call_soon(self._flush_quietly)

    def _flush_quietly(self) -> None:
        with contextlib.suppress(Exception):  # it is kept, and raised where somebody can do something about it
            self.flush()
