# SPDX-License-Identifier: Apache-2.0
"""A world inside its own process: asked by messages, it answers plain data. Messages are frames, see `workers.forks`.

    parent → world   (number, operation, arguments)
    world → parent   its process id; then (number, outcome, value, tools): outcome is a word of OUTCOMES, tools are the
                     offered tools where they are others than before, else None; with a number below zero the world
                     asks, and is answered (number, "reply", (outcome, value))

A world that was forked begins with the modules that the environment has loaded, and with random generators seeded by
the sample's id: two worlds of one sample begin alike, share nothing, and can be made again.

Nothing but plain data leaves the process: what a tool returned is made text here, and cut here, and facts must be JSON.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import socket
import sys
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from reward_kit.agent.calls import ToolRunner, text_of
from reward_kit.agent.environment import Answer, Attached, Environment, World, finished
from reward_kit.agent.tools import Tool, ToolError
from reward_kit.errors import ItemError
from reward_kit.models import Message, Sample
from reward_kit.utils import exact_json
from reward_kit.workers.child import describe
from reward_kit.workers.forks import LENGTH, frame

__all__ = ["ASKS", "DONE", "RAISED", "TOOL_ERROR", "HostedWorld", "described", "read_frame", "worlds_of"]

DONE, TOOL_ERROR, RAISED, ASKS = OUTCOMES = ("done", "tool_error", "raised", "asks")
_MOST_BYTES = 64 << 20
"""Of one frame that a world sends."""
_CLOSING_SECONDS = 5.0


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next value; an `EOFError` when the other process has closed the connection."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise EOFError("the other process has closed the connection") from error


def worlds_of(factory: bytes) -> Callable[[socket.socket], int]:
    """What serves a world of the environment that a pickled factory makes, here and now."""
    environment: Environment = pickle.loads(factory)()
    return lambda channel: asyncio.run(HostedWorld(environment, channel).run())


class HostedWorld:
    """The process's side of the conversation."""

    def __init__(self, environment: Environment, channel: socket.socket) -> None:
        """Serve one world of `environment` to whoever holds the other end of `channel`."""
        self._environment = environment
        self._channel = channel
        self._world: World | None = None
        self._told: list[dict[str, Any]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._questions = 0
        self._attached: tuple[Attached, ...] = ()

    async def run(self) -> int:
        """Answer until the parent hangs up; the process's exit code."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel)
        self._writer.write(frame(os.getpid()))
        try:
            while True:
                number, operation, arguments = await read_frame(reader)
                if operation == "reply":
                    self._asked.pop(number).set_result(arguments)
                    continue
                task = asyncio.create_task(self._handle(number, operation, arguments))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except EOFError:
            return 0

    async def _handle(self, number: int, operation: str, arguments: tuple[Any, ...]) -> None:
        outcome: str
        value: Any
        try:
            outcome, value = DONE, await getattr(self, f"_{operation}")(*arguments)
        except ToolError as error:
            outcome, value = TOOL_ERROR, (str(error), error.kind)
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's world may raise anything
            kind, message, _ = describe(error)
            outcome, value = RAISED, (kind, message, isinstance(error, ItemError), getattr(error, "retryable", True))
        await self._send(number, outcome, value)

    async def _send(self, number: int, outcome: str, value: Any) -> None:
        blob = frame((number, outcome, value, self._news() if outcome != ASKS else None))
        if len(blob) > _MOST_BYTES:
            told = f"it gave {len(blob) >> 20} MB, and {_MOST_BYTES >> 20} MB are taken"
            blob = frame((number, RAISED, ("ValueError", told, False, False), None))
        self._writer.write(blob)
        await self._writer.drain()

    def _news(self) -> list[dict[str, Any]] | None:
        """The tools as the parent is told of them, where they are others than it knows."""
        if self._world is None:
            return None
        tools = [described(tool) for tool in self._own_tools()]
        if tools == self._told:
            return None
        self._told = tools
        return tools

    def _own_tools(self) -> Sequence[Tool]:
        """What the world offers, without the tools of the parent's."""
        kept, self.world._attached = self.world._attached, self._attached
        try:
            return self.world.offered
        finally:
            self.world._attached = kept

    # ── what can be asked ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def world(self) -> World:
        """The world, which has been opened."""
        assert self._world is not None
        return self._world

    async def _ping(self) -> None:
        """Say that the process still reacts."""

    async def _open(self, sample: Sample) -> tuple[str, bool, bool]:
        _seed(sample.id)
        self._world = await finished(self._environment.open(sample))
        self._world.on_the_loop = True  # the process is its own: it may hold it up
        self._attached = self.world._attached
        takes_users = type(self.world).take_user is not World.take_user
        return self.world.durability, self.world.needs_question, takes_users

    async def _start(self, draw: int, on_record: tuple[Sequence[Message] | None, Any], has_user: bool) -> Any:
        self.world.draw = draw
        if has_user:
            self.world.take_user(_UserOfParent(self._ask_parent))
        self.world.runner.begin_turn(*on_record)
        self.world.runner.keep = self._keep
        return _plain(await finished(self.world.start()))

    async def _answer(
        self, message: Message, on_record: tuple[Sequence[Message] | None, Any], needs_approval: bool,
        attached: Sequence[dict[str, Any]],
    ) -> Any:  # fmt: skip
        self.world._attached = (*self._attached, Attached([self._of_parent(**tool) for tool in attached]))
        self.world.runner = runner = ToolRunner(self._approval if needs_approval else None)
        runner.begin_turn(*on_record)
        runner.keep = self._keep
        answer = _plain(await finished(self.world.answer(message)))
        return answer, runner.uses

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        for tool in self._own_tools():
            if tool.name == name:
                checked = arguments if tool.check is None else tool.check(arguments)
                text = text_of(await tool.call(checked), most := tool.max_output)
                return text if len(text) <= 8 * most else text[: 4 * most] + text[-4 * most :]  # it is cut once more
        raise ToolError(f"There is no tool {name!r} any more.", "unknown_tool")

    async def _facts(self) -> Any:
        return exact_json.loads(exact_json.dumps(await self.world.all_facts(), non_str_keys=True))

    async def _snapshot(self) -> bytes:
        return bytes(await finished(self.world.snapshot()))

    async def _restore(self, state: bytes) -> None:
        await finished(self.world.restore(state))

    async def _close(self) -> None:
        await self.world.close_all()

    # ── what is asked of the parent ──────────────────────────────────────────────────────────────────────────────────

    async def _keep(self, noted: Any, cost: float, at_most: bool) -> None:
        """Keep what the world notes in the middle of a turn."""
        await self._ask_parent("note", "", {"noted": noted, "cost": cost, "cost_is_at_most": at_most})

    async def _approval(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Whether a call may run."""
        refusal: str | None = await self._ask_parent("approval", name, arguments)
        return refusal

    def _of_parent(self, **about: Any) -> Tool:
        """A tool that somebody has attached to the world in the parent, and that runs there."""
        name = about["name"]

        async def call(arguments: dict[str, Any]) -> Any:
            return await self._ask_parent("tool", name, arguments)

        return Tool(call=call, **about)

    async def _ask_parent(self, what: str, name: str, arguments: dict[str, Any]) -> Any:
        self._questions += 1
        number = -self._questions
        self._asked[number] = asyncio.get_running_loop().create_future()
        await self._send(number, ASKS, (what, name, arguments))
        outcome, value = await self._asked[number]
        if outcome == TOOL_ERROR:
            raise ToolError(*value)
        if outcome == RAISED:
            raise RuntimeError(value)
        return value


class _UserOfParent:
    """The user whom the parent has for the world, and who talks there. The parent knows which episode it is."""

    def __init__(self, ask: Callable[[str, str, dict[str, Any]], Awaitable[Any]]) -> None:
        self._ask = ask

    async def speak(self, sample: Sample, conversation: Sequence[Message], draw: int) -> Any:
        return await self._ask("user", "speak", {"conversation": [*conversation]})

    async def act(self, sample: Sample, conversation: Sequence[Message], draw: int, tools: Sequence[Any]) -> Any:
        return await self._ask("user", "act", {"conversation": [*conversation], "tools": [*tools]})


def _seed(sample_id: str) -> None:
    """Have every world of a sample draw the same numbers from the global generators, here and when played again."""
    seed = zlib.crc32(sample_id.encode("utf-8", "replace"))
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)


def described(tool: Tool) -> dict[str, Any]:
    """What the other side must know of a tool to offer it."""
    return {
        "name": tool.name, "description": tool.description, "parameters": dict(tool.parameters), "reads": tool.reads,
        "parallel": tool.parallel, "timeout": tool.timeout, "max_output": tool.max_output, "spec": tool.spec,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """What a world said, as plain data: text and messages, in an answer or bare."""
    if isinstance(value, Answer):
        messages = [_plain_message(each) for each in value.messages]
        return replace(value, messages=messages)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Message | dict):
        return [_plain_message(value)]
    return [_plain_message(each) for each in value]


def _plain_message(message: Any) -> Message:
    if isinstance(message, Message):
        return Message.model_validate(message.model_dump())
    return Message.model_validate(message)
