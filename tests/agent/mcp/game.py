# SPDX-License-Identifier: Apache-2.0
"""A world of ours to be served: a number that is added to, and that prints where it should not."""

from __future__ import annotations

from typing import Any

from reward_kit.agent import Answer, World, tool
from reward_kit.errors import EnvironmentFailure
from reward_kit.models import Message, Sample


class Game(World):
    """Adds up."""

    def __init__(self, sample: Sample, step: int = 1) -> None:
        self.value = int(sample.columns.get("seed", 0))
        self.step = step

    @tool
    def add(self, amount: int) -> int:
        """Add to the number.

        Args:
            amount: how much
        """
        print("a tool that prints", flush=True)
        self.value += amount * self.step
        return self.value

    @tool(reads=True)
    def look(self) -> dict[str, Any]:
        """See the number."""
        return {"value": self.value}

    @tool
    def fall(self) -> str:
        """Raise an exception."""
        raise ValueError("the floor is wet")

    @tool
    def crash(self) -> str:
        """Have the world fail."""
        raise EnvironmentFailure("the sky fell down")

    @tool
    async def wait(self) -> str:
        """Wait for very long."""
        import asyncio

        await asyncio.sleep(3600)
        return "late"

    async def answer(self, message: Message) -> Answer:
        """Every turn is worth a little, and 100 is the end."""
        told = await self.use_tools(message)
        return Answer(told, reward=0.5, done=self.value >= 100)

    def facts(self) -> dict[str, Any]:
        return {"value": self.value}
