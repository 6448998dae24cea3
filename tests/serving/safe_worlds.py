# SPDX-License-Identifier: Apache-2.0
"""A world for tests of stepping from elsewhere: a safe that opens at a number."""

from __future__ import annotations

from typing import Any

from reward_kit import EvaluateResult, Message, reward_function
from reward_kit.agent.environment import Answer, World
from reward_kit.agent.tools import tool
from reward_kit.models import Sample

open_worlds: list[Safe] = []
"""Those that are open in this process."""


class Safe(World):
    """Turn the dial to the sample's number."""

    def __init__(self, sample: Sample) -> None:
        if sample.columns.get("fails") == "open":
            raise OSError("no safe")
        self.number, self.fails, self.is_open, self.turns = sample.ground_truth, sample.columns.get("fails"), False, 0
        open_worlds.append(self)

    @tool
    def dial(self, number: int) -> str:
        """Turn the dial.

        Args:
            number: where to
        """
        self.is_open = number == self.number
        return "click" if self.is_open else "nothing"

    async def start(self) -> list[Message]:
        return [Message(role="user", content="A safe.")]

    async def answer(self, message: Message) -> Answer:
        self.turns += 1
        if self.fails == "later":
            raise OSError("the safe is gone")
        messages = await self.use_tools(message)
        return Answer(messages, reward=1.0 if self.is_open else -0.5, done=self.is_open or self.turns == 3)

    async def facts(self) -> dict[str, Any]:
        return {"open": self.is_open}

    async def close(self) -> None:
        open_worlds.remove(self)


@reward_function
async def opened(messages: list[Message], facts: dict[str, Any] | None = None, **kwargs: Any) -> EvaluateResult:
    """Whether the safe was open in the end."""
    if kwargs.get("fails") == "verdict":
        raise ValueError("cannot tell")
    return EvaluateResult(score=10.0 * bool((facts or {}).get("open")), reason="looked")
