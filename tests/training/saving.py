# SPDX-License-Identifier: Apache-2.0
"""A world that fails when it is told to, and rewards: what trainers are given in these tests.

Rewards are here because a worker imports the module of its reward, and a test of verl imports a lot.
"""

from __future__ import annotations

import json
from typing import Any

from reward_kit.agent import Answer, World, tool
from reward_kit.models import Message, Sample


def saved(messages: list[Message], facts: dict[str, Any], ground_truth: Any) -> float:
    """1 where the account holds what was asked for, and 1 more where the model says so in the end."""
    return float(facts["balance"] == int(ground_truth)) + float(messages[-1].text.strip() == "Saved.")


def raises(messages: list[Message]) -> float:
    """Never judges."""
    raise ValueError("broken")


def most(messages: list[Message], facts: dict[str, Any]) -> float:
    """How many were inside at the same time."""
    return float(facts["most"])


def cut_off(messages: list[Message], truncated: bool) -> float:
    """1 where a limit ended the episode."""
    return float(truncated)


class Lamp(World):
    """A lamp that is done when it burns. It fails where the prompt asks for it: at once, or when it is touched."""

    opened = closed = 0

    def __init__(self, sample: Sample) -> None:
        self.asked, self.on = sample.messages[-1].text, False
        if "broken at once" in self.asked:
            raise OSError("no lamp")
        type(self).opened += 1

    def start(self) -> str:
        return "It is dark."

    @tool
    def switch(self, on: bool) -> str:
        """Switch the lamp.

        Args:
            on: whether it is to burn
        """
        if "broken later" in self.asked:
            raise SystemError("unseen")
        self.on = on
        return "Click."

    async def answer(self, message: Message) -> Answer:
        if "broken later" in self.asked:
            raise OSError("the bulb burst")
        return Answer(await self.use_tools(message), reward=0.5, done=self.on)

    def close(self) -> None:
        type(self).closed += 1


def call(name: str, **arguments: Any) -> str:
    """A call as a model writes it into its text."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
