# SPDX-License-Identifier: Apache-2.0
"""Worlds, models and rewards for the tests of agents. Named in configs by the path of this file, too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from reward_kit.agent import Answer, Hidden, World, tool
from reward_kit.config_models import AgentConfig, Sampling
from reward_kit.models import Completion, Failure, Message, Rollout, Sample, Step, Usage


class Account(World):
    """An account: money goes in and out, and how often it was asked is counted."""

    opened: ClassVar[int] = 0
    closed: ClassVar[int] = 0

    def __init__(self, sample: Sample, start: int = 0) -> None:
        type(self).opened += 1
        self.balance = start
        self.history: list[int] = []

    @tool
    async def deposit(self, amount: int) -> str:
        """Put money in.

        Args:
            amount: how much
        """
        self.balance += amount
        self.history.append(amount)
        return f"The balance is {self.balance}."

    @tool(reads=True, parallel=True)
    async def balance_now(self) -> int:
        """See the balance."""
        return self.balance

    def facts(self) -> dict[str, Any]:
        return {"balance": self.balance, "history": self.history}

    def close(self) -> None:
        type(self).closed += 1


class Walk(World):
    """A text game without tools: `left` and `right` on a line, until the fifth place."""

    def __init__(self, sample: Sample) -> None:
        self.place = 0

    def start(self) -> str:
        return "You stand at 0."

    def answer(self, message: Message) -> Answer:
        self.place += {"left": -1, "right": 1}.get(message.text.strip(), 0)
        seen = Message(role="user", content=f"You stand at {self.place}.")
        return Answer([seen], reward=float(self.place), done=self.place >= 5, state=f"at {self.place}")

    def facts(self) -> dict[str, Any]:
        return {"place": self.place}


class Snapshots(Account):
    """An account that is had again from a snapshot. Its tools are never run twice: that would be noticed."""

    durability = "snapshot"

    def snapshot(self) -> bytes:
        return json.dumps([self.balance, self.history]).encode()

    def restore(self, state: bytes) -> None:
        self.balance, self.history = json.loads(state)


class Liar(Account):
    """An account that claims to be the same again, and tells how many worlds there were before it."""

    @tool
    async def deposit(self, amount: int) -> str:
        """Put money in."""
        self.balance += amount
        return f"The balance is {self.balance} in world {id(self)} of {type(self).opened}."


def double(number: int, state: Hidden[dict[str, Any]]) -> int:
    """Double a number.

    Args:
        number: what to double
    """
    state["doubled"] = state.get("doubled", 0) + 1
    return 2 * number


def call(name: str, arguments: Mapping[str, Any] | str | None = None, call_id: str = "") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def calls(*made: dict[str, Any]) -> Message:
    return Message.model_validate({"role": "assistant", "content": None, "tool_calls": list(made)})


def says(text: str) -> Message:
    return Message(role="assistant", content=text)


Script = Callable[[Sequence[Message], int], Message | Failure]


class Model:
    """A model that says what a function makes of the conversation and the draw, and counts what it is asked."""

    model = "scripted"
    identity: Mapping[str, Any] = {}

    def __init__(self, script: Script | Sequence[Message | Failure]) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.tools: list[list[str]] = []
        self._script: Script = script if callable(script) else lambda messages, _: script[turn_of(messages)]

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], sampling: Sampling,
        tools: list[dict[str, Any]] | None = None, sample_id: str = "",
    ) -> list[Completion | Failure]:  # fmt: skip
        self.asked.append((sample_id, draws[0], turn_of(messages)))
        self.tools.append([each["function"]["name"] for each in tools or ()])
        await asyncio.sleep(0)
        said = self._script(messages, draws[0])
        if isinstance(said, Failure):
            return [said]
        reason = "tool_calls" if said.tool_calls else "stop"
        return [Completion(message=said, finish_reason=reason, usage=Usage(prompt_tokens=10, completion_tokens=3))]

    async def close(self) -> None:
        pass


def turn_of(messages: Sequence[Message]) -> int:
    """How often the model has spoken."""
    return sum(message.role == "assistant" for message in messages)


SAMPLE = Sample(id="s", messages=[Message(role="user", content="Go.")])


def settings(**given: Any) -> AgentConfig:
    return AgentConfig.model_validate(given)


def essence(rollout: Rollout) -> dict[str, Any]:
    """All of a rollout but what differs from one time to the next: how long things took, and when."""
    fields = rollout.model_dump(exclude={"generated_at", "latency_ms", "cost", "cached", "usage"})
    for step in fields["steps"] or ():
        for name in ("latency_ms", "cost", "cached"):
            step.pop(name)
        for use in step["calls"]:
            use.pop("seconds")
    return fields


# ── rewards, named in configs ────────────────────────────────────────────────────────────────────────────────────────


async def of_the_world(messages: list[Message], world: Account, facts: dict[str, Any], steps: list[Step]) -> float:
    """Judge by a world in which the steps were played again."""
    assert facts == {"balance": world.balance, "history": world.history}
    assert len(steps) == sum(message.role == "assistant" for message in messages)
    return float(world.balance)


def of_the_facts(messages: list[Message], facts: dict[str, Any], ended: str, truncated: bool) -> float:
    """Judge by what the world said of itself."""
    return float(facts["balance"]) if ended == "answered" and not truncated else -1.0
