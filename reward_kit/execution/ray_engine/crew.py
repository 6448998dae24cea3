# SPDX-License-Identifier: Apache-2.0
"""The driver's side of the actors of one kind: things go out in packs, and what was lost with an actor goes out again.

    do(thing) ─▶ waiting ─▶ the member with most room ═ add ═▶ actor
        ▲                        │ things under way
        └─ outcome ◀═ take ═ actor
                                 └─ actor lost: its things wait again, first in line; another actor is made

A member is given no more than its window. So what is under way is bounded, whatever the number of samples, and an actor
that dies takes nothing with it that was on its way to others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from reward_kit.errors import ClusterError, RewardKitError
from reward_kit.execution.ray_engine.mailbox import Ask, Done, Tell
from reward_kit.execution.ray_engine.services import Holdings, Services
from reward_kit.execution.ray_engine.stations import ActorError, Facts
from reward_kit.execution.ray_engine.wire import pack, unpack

__all__ = ["Actor", "Crew", "LostError"]

_log = logging.getLogger(__name__)

_MOST_DEATHS = 5
"""Actors that may be lost with the same thing before it is recorded as failed: it may be what kills them."""
_MOST_FAILED_STARTS = 5
"""Actors in a row that may be lost before they are ready."""
_PATIENCE_SECONDS = 30.0
"""How long nobody may be ready before that is said."""
_CLOSING_SECONDS = 10.0
_PREFETCH = 64
"""Things that wait in an actor, at most, so that it need not wait for the driver."""


class LostError(Exception):
    """Actors were lost, again and again, while they did this thing."""


@dataclass
class Actor:
    """An actor that was asked for: how to call it, and how to end it."""

    name: str
    open: Callable[[], Awaitable[Facts]]
    add: Callable[[bytes], object]
    take: Callable[[], Awaitable[bytes]]
    close: Callable[[], Awaitable[bytes]]
    kill: Callable[[], None]


@dataclass
class _Thing:
    number: int
    make: Callable[[int], Any]
    """Makes what is sent; given how often it was lost."""
    outcome: asyncio.Future[Any]
    deaths: int = 0


@dataclass(eq=False)
class _Member:
    actor: Actor
    facts: Facts
    window: int
    held: Holdings
    under_way: dict[int, _Thing] = field(default_factory=dict)
    things: list[tuple[int, Any]] = field(default_factory=list)
    replies: list[tuple[int, Any, BaseException | None]] = field(default_factory=list)
    is_due: bool = False

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"actor {self.actor.name!r} (process {self.facts.pid}) on node {self.facts.host} ({self.facts.node[:8]})"


class Crew:
    """Actors of one kind."""

    def __init__(
        self,
        kind: str,
        size: int,
        make: Callable[[int], Actor],
        services: Services,
        lost_errors: tuple[type[Exception], ...],
        *,
        concurrency: int | None = None,
        needs: str = "",
    ) -> None:
        """Have `size` actors, each made by `make(number)`, under way with `concurrency` things or as many as they say.

        `lost_errors` are what calling an actor raises when it is gone; `needs` says what each needs of a node.
        """
        self._kind, self._size, self._make, self._services = kind, size, make, services
        self._lost_errors, self._concurrency, self._needs = lost_errors, concurrency, needs
        self._waiting: deque[_Thing] = deque()
        self._members: list[_Member] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = asyncio.Event()
        self._numbers = 0
        self._made = 0
        self._is_dealing = False
        self._error: BaseException | None = None
        self.lost = 0
        """Actors that were lost so far."""
        self.most_under_way = 0
        """The most things that were given out at a time."""
        self.facts: Facts | None = None
        """Of the first actor that was ready."""
        self.printed: list[tuple[str, bytes]] = []
        """What rewards printed, by actor."""

    @property
    def window(self) -> int:
        """Things that are worth having under way, in all actors together."""
        return self._size * self._window_of(self.facts)

    async def start(self) -> None:
        """Have the actors made; come back when the first is ready."""
        for number in range(self._size):
            self._hire(number)
        patience = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._say_who_is_missing)
        try:
            await self._ready.wait()
        finally:
            patience.cancel()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """End all actors in good order, as far as they do so soon."""
        self._error = self._error or ClusterError("The actors have ended.")
        members = list(self._members)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await asyncio.gather(*map(self._dismiss, members), return_exceptions=True)
        for member in members:
            member.actor.kill()

    async def do(self, make: Callable[[int], Any]) -> Any:
        """What comes of a thing. `make` is called for what to send; again, with how often, where an actor was lost."""
        if self._error is not None:
            raise self._error
        self._numbers += 1
        thing = _Thing(self._numbers, make, asyncio.get_running_loop().create_future())
        self._waiting.append(thing)
        self._deal_soon()
        return await thing.outcome

    # ── giving out ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _deal_soon(self) -> None:
        if not self._is_dealing:
            self._is_dealing = True
            asyncio.get_running_loop().call_soon(self._deal)

    def _deal(self) -> None:
        """Give what waits to the members with room, the emptiest first, and send each its pack."""
        self._is_dealing = False
        rooms = {member: member.window - len(member.under_way) for member in self._members}
        while self._waiting and rooms:
            member = max(rooms, key=rooms.__getitem__)
            if rooms[member] <= 0:
                break
            following = max((room for other, room in rooms.items() if other is not member), default=0)
            for _ in range(max(1, rooms[member] - following)):
                if not self._waiting:
                    break
                thing = self._waiting.popleft()
                if thing.outcome.done():  # nobody waits for it any more
                    continue
                member.things.append((thing.number, thing.make(thing.deaths)))
                member.under_way[thing.number] = thing
                rooms[member] -= 1
        self.most_under_way = max(self.most_under_way, sum(len(member.under_way) for member in self._members))
        for member in self._members:
            if member.things or member.replies:
                self._send(member)

    def _send(self, member: _Member) -> None:
        blob = pack((member.things, member.replies))
        member.things, member.replies = [], []
        member.actor.add(blob)

    # ── taking back ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive(self, member: _Member, blob: bytes) -> None:
        for message in unpack(blob):
            if isinstance(message, Done):
                self._done(member, message)
            elif isinstance(message, Tell):
                self._services.taker_of(message.service)(member.held, *message.args)
            else:
                self._run(self._reply(member, message))
        if self._waiting:
            self._deal_soon()

    def _done(self, member: _Member, message: Done) -> None:
        thing = member.under_way.pop(message.number, None)
        if thing is None or thing.outcome.done():
            return
        error = message.error
        if error is None:
            thing.outcome.set_result(message.outcome)
        elif isinstance(error, ActorError):
            thing.outcome.set_exception(ActorError(f"{error}\nThis was in {member.place}."))
        else:
            thing.outcome.set_exception(error)

    async def _reply(self, member: _Member, question: Ask) -> None:
        error: BaseException | None = None
        value = None
        try:
            value = await self._services.answerer_of(question.service)(member.held, *question.args)
        except RewardKitError as refused:
            error = refused
        member.replies.append((question.number, value, error))
        self._deal_soon()

    # ── actors come and go ───────────────────────────────────────────────────────────────────────────────────────────

    def _hire(self, number: int, failed_starts: int = 0) -> None:
        self._run(self._serve(number, failed_starts))

    def _run(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _serve(self, number: int, failed_starts: int) -> None:
        """One member, from being made to being lost."""
        actor = self._make(number)
        try:
            facts = await actor.open()
        except self._lost_errors as error:
            self._start_failed(actor, number, failed_starts, error)
            return
        except asyncio.CancelledError:
            actor.kill()
            raise
        member = _Member(actor, facts, self._window_of(facts), self._services.holdings())
        self.facts = self.facts or facts
        self._members.append(member)
        self._ready.set()
        self._deal_soon()
        try:
            while True:
                self._receive(member, await actor.take())
        except self._lost_errors as error:
            self._lost(member, error)
        self._hire(number)

    def _window_of(self, facts: Facts | None) -> int:
        concurrency = self._concurrency or (facts.concurrency if facts is not None else 1)
        return concurrency + min(concurrency, _PREFETCH)

    def _start_failed(self, actor: Actor, number: int, failed_starts: int, error: Exception) -> None:
        actor.kill()
        if failed_starts + 1 >= _MOST_FAILED_STARTS:
            raise ClusterError(
                f"Actor {actor.name!r} was lost {failed_starts + 1} times before it was ready: {_first_line(error)}. "
                "Look at the logs of Ray on its nodes; memory is the usual reason."
            ) from error
        _log.warning("Actor %r was lost before it was ready (%s). Another one is made.", actor.name, _first_line(error))
        self._hire(number, failed_starts + 1)

    def _lost(self, member: _Member, error: Exception) -> None:
        """Have what was under way done by others. What the actor held of what all share is free again."""
        self.lost += 1
        self._members.remove(member)
        member.actor.kill()  # it may only be out of reach: nobody must go on paying there
        again = [thing for thing in member.under_way.values() if not thing.outcome.done()]
        _log.warning(
            "Lost %s: %s. The work that it had begun (%d) is done again.", member.place, _first_line(error), len(again)
        )
        self._services.lost(member.held)
        for thing in reversed(again):
            thing.deaths += 1
            if thing.deaths < _MOST_DEATHS:
                self._waiting.appendleft(thing)
            else:
                thing.outcome.set_exception(
                    LostError(f"{thing.deaths} actors were lost while they did it, the last of them {member.place}")
                )
        self._deal_soon()

    async def _dismiss(self, member: _Member) -> None:
        printed = await member.actor.close()
        if printed:
            self.printed.append((member.place, printed))
        self._services.ended(member.held)

    def _fail(self, error: BaseException) -> None:
        """Nothing more can be done: everybody who waits is told."""
        self._error = self._error or error
        self._ready.set()
        things = [*self._waiting, *(thing for member in self._members for thing in member.under_way.values())]
        self._waiting.clear()
        for thing in things:
            if not thing.outcome.done():
                thing.outcome.set_exception(error)

    def _say_who_is_missing(self) -> None:
        _log.warning(
            "No actor that can %s is ready after %.0f s. Each needs %s of a node: waiting for one that has it.",
            self._kind, _PATIENCE_SECONDS, self._needs,
        )  # fmt: skip


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
