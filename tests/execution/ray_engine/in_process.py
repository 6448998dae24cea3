# SPDX-License-Identifier: Apache-2.0
"""The actors of the Ray engine without Ray: the same stations and crews, on one event loop, killed by a flag."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from reward_kit.execution.ray_engine.crew import Actor, Crew
from reward_kit.execution.ray_engine.mailbox import Done, Mailbox
from reward_kit.execution.ray_engine.services import Services
from reward_kit.execution.ray_engine.stations import Facts
from reward_kit.execution.ray_engine.wire import pack, unpack

T = TypeVar("T")


class Gone(Exception):
    """What calling a dead actor raises here."""


@dataclass
class Hand:
    """An actor that calls `work(thing, mailbox)` for each thing."""

    name: str
    work: Callable[[Any, Mailbox], Awaitable[Any]]
    concurrency: int = 4

    def __post_init__(self) -> None:
        self.mailbox = Mailbox()
        self.dead = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.received = 0

    def kill(self) -> None:
        self.dead.set()
        for task in self.tasks:
            task.cancel()

    async def alive(self, work: Awaitable[T]) -> T:
        """The outcome, unless the actor dies first."""
        doing, dying = asyncio.ensure_future(work), asyncio.ensure_future(self.dead.wait())
        await asyncio.wait({doing, dying}, return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if self.dead.is_set():
            doing.cancel()
            raise Gone(f"{self.name} is dead")
        return await doing

    def add(self, blob: bytes) -> None:
        if self.dead.is_set():
            return
        things, replies = unpack(blob)
        self.received += len(things)
        for reply in replies:
            self.mailbox.reply(*reply)
        for number, thing in things:
            self.mailbox.under_way += 1
            task = asyncio.ensure_future(self._do(number, thing))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _do(self, number: int, thing: Any) -> None:
        self.mailbox.done(Done(number, await self.work(thing, self.mailbox)))

    async def take(self) -> bytes:
        return pack(await self.mailbox.take())

    async def opened(self) -> Facts:
        return Facts("0123456789abcdef", "somewhere", 42, self.concurrency)

    async def close(self) -> bytes:
        self.kill()
        return b""

    def actor(self) -> Actor:
        return Actor(
            self.name, open=lambda: self.alive(self.opened()), add=self.add, take=lambda: self.alive(self.take()),
            close=self.close, kill=self.kill,
        )  # fmt: skip


@contextlib.asynccontextmanager
async def crew_of(
    size: int, work: Callable[[Any, Mailbox], Awaitable[Any]], services: Services, concurrency: int = 4
) -> AsyncIterator[tuple[Crew, list[Hand]]]:
    """A crew, and all actors that were ever made for it."""
    made: list[Hand] = []

    def make(number: int) -> Actor:
        made.append(Hand(f"hand-{number}", work, concurrency))
        return made[-1].actor()

    crew = Crew("work", size, make, services, (Gone,), needs="nothing")
    await crew.start()
    try:
        yield crew, made
    finally:
        await crew.close()
