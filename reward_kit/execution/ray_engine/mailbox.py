# SPDX-License-Identifier: Apache-2.0
"""How an actor talks with the driver: what it has to say is collected, and taken by the driver in packs.

    driver ── add(pack) ──▶ actor      things to do, and replies to what the actor asked
    driver ◀─ take() ────── actor      what was done, what it asks, what it tells; waits until there is something

So many small things cost two remote calls for all of them together. A pack goes when a quarter of what is under way is
in it, or after `linger` seconds, and at once when the actor has nothing else to do.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

__all__ = ["Ask", "Done", "Mailbox", "Tell"]

_LINGER_SECONDS = 0.005
_ENOUGH = 256
"""Messages that are a pack worth sending, however much is under way."""


class Done(NamedTuple):
    """A thing is done: what came of it, or the error that it ended with."""

    number: int
    outcome: Any
    error: BaseException | None = None


class Ask(NamedTuple):
    """The driver is asked for something, and replies."""

    number: int
    service: str
    args: tuple[Any, ...]


class Tell(NamedTuple):
    """The driver is told something, and does not reply."""

    service: str
    args: tuple[Any, ...]


class Mailbox:
    """What an actor has to say, and the replies it waits for. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: list[Done | Ask | Tell] = []
        self._something = asyncio.Event()
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self.under_way = 0
        """Things that were given and are not done."""
        self.linger = _LINGER_SECONDS
        """How long a pack waits for more. What is in it is lost with the actor, so little where it was paid for."""
        self._enough = asyncio.Event()
        self._enough_at = 0

    def done(self, message: Done) -> None:
        """Say that a thing is done."""
        self.under_way -= 1
        self._put(message)

    def tell(self, service: str, *args: Any) -> None:
        """Tell one of the driver's services something."""
        self._put(Tell(service, args))

    async def ask(self, service: str, *args: Any) -> Any:
        """Ask one of the driver's services for something, and wait for the reply."""
        self._asked += 1
        number = self._asked
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        self._put(Ask(number, service, args))
        try:
            return await reply
        finally:
            del self._replies[number]

    def reply(self, number: int, value: Any, error: BaseException | None) -> None:
        """The driver's reply has come."""
        waiting = self._replies.get(number)
        if waiting is None or waiting.done():  # whoever asked was cancelled
            return
        if error is None:
            waiting.set_result(value)
        else:
            waiting.set_exception(error)

    async def take(self) -> list[Done | Ask | Tell]:
        """All that there is to say; waits until there is something."""
        await self._something.wait()
        self._enough_at = min(_ENOUGH, self.under_way // 4)
        if len(self._waiting) < self._enough_at:
            self._enough.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), self.linger)
        taken, self._waiting = self._waiting, []
        self._something.clear()
        return taken

    def _put(self, message: Done | Ask | Tell) -> None:
        self._waiting.append(message)
        self._something.set()
        if len(self._waiting) >= self._enough_at:
            self._enough.set()
