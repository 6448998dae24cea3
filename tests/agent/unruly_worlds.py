# SPDX-License-Identifier: Apache-2.0
"""Worlds that use globals, hang, crash and return what nobody can use."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from typing import Any

from reward_kit.agent.environment import Answer, World
from reward_kit.agent.tools import ToolError, tool
from reward_kit.models import Message, Sample

COUNT = {"value": 0}


class Unruly(World):
    """Counts in a global, and does on request what a world should not do."""

    def __init__(self, sample: Sample, step: int = 1) -> None:
        if sample.columns.get("raises"):
            raise ValueError("cannot be opened")
        if sample.columns.get("dies"):
            os._exit(7)
        self._step = step
        self._hangs = sample.columns.get("hangs")

    def start(self) -> list[Message]:
        return [Message(role="user", content=f"go {random.random()}")]

    @tool
    def count(self) -> int:
        """Count in a global."""
        COUNT["value"] += self._step
        return COUNT["value"]

    @tool(name="draw", on_the_loop=True)
    def draws(self) -> float:
        """Draw from the global generator."""
        return random.random()

    @tool
    def exits(self) -> str:
        """End the process."""
        os._exit(3)

    @tool
    def crashes(self) -> str:
        """End the process by a signal."""
        os.kill(os.getpid(), signal.SIGSEGV)
        return "still here"

    @tool
    def large(self) -> str:
        """Return 100 MB."""
        return "ab" * 50_000_000

    @tool
    def garbage(self) -> bytes:
        """Return what is no UTF-8."""
        return b"\xff\xfe caf\xc3\xa9"

    @tool
    def surrogate(self) -> str:
        """Return text that cannot be written."""
        return "half \ud83d"

    @tool
    def live(self) -> Any:
        """Return an object."""
        return threading.Lock()

    @tool(timeout=0.2)
    async def waits(self) -> str:
        """Wait for ever."""
        await asyncio.sleep(3600)
        return "never"

    @tool(on_the_loop=True)
    def blocks(self) -> str:
        """Keep the whole process busy."""
        time.sleep(3600)
        return "never"

    @tool
    def refuses(self) -> str:
        """Fail as a tool does."""
        raise ToolError("no", "refused")

    @tool
    def remembers(self, size: int) -> int:
        """Take memory."""
        return len(b"x" * size)

    def facts(self) -> dict[str, Any]:
        if self._hangs:
            time.sleep(3600)
        return dict(COUNT)


class Changing(World):
    """A world whose tools change."""

    def __init__(self, sample: Sample) -> None:
        self._turn = 0

    @property
    def tools(self) -> Any:
        return super().tools[: self._turn]

    @tool
    def first(self) -> str:
        """The first tool."""
        return "1"

    @tool
    def second(self) -> str:
        """The second tool."""
        return "2"

    async def answer(self, message: Message) -> Answer:
        shown = await self.use_tools(message)
        self._turn += 1
        return Answer(
            [*shown, Message(role="user", content="more")], reward=0.5, done=self._turn > 2, state=f"t{self._turn}"
        )


class Kept(World):
    """A world that is had again from a snapshot."""

    durability = "snapshot"

    def __init__(self, sample: Sample) -> None:
        self._seen: list[str] = []

    def answer(self, message: Message) -> str:
        self._seen.append(message.text)
        return " ".join(self._seen)

    def snapshot(self) -> bytes:
        return "\n".join(self._seen).encode()

    def restore(self, state: bytes) -> None:
        self._seen = state.decode().split("\n")
