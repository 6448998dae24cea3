# SPDX-License-Identifier: Apache-2.0
"""Worlds, rewards and a model for runs that are killed, named in configs by the path of this file."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

from reward_kit.agent import World, in_worker, tool
from reward_kit.agent.environments.two_sided import TwoSided, two_sided
from reward_kit.models import Message, Sample
from tests.agent.environments.test_two_sided import task
from tests.agent.worlds import Account, call
from tests.generation.loopback import Says, answer

TURNS = 5
TASK = task()
LIBRARY = "tests.agent.environments.test_two_sided:library"

elsewhere = in_worker("tests.agent.worlds:Account")
desk_elsewhere = in_worker(TwoSided, {"domain": LIBRARY})


class Chance(Account):
    """An account whose opening is drawn by chance, anew in each process."""

    durability = "snapshot"

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.secret = random.SystemRandom().randrange(10**9)

    def start(self) -> str:
        return f"The account's number is {self.secret}."

    @tool
    async def number(self) -> int:
        """See the account's number."""
        return self.secret

    def facts(self) -> dict[str, Any]:
        return {"balance": self.balance, "history": self.history, "secret": self.secret}

    def snapshot(self) -> bytes:
        return json.dumps([self.balance, self.history, self.secret]).encode()

    def restore(self, state: bytes) -> None:
        self.balance, self.history, self.secret = json.loads(state)


def note(text: str) -> str:
    """Note something.

    Args:
        text: what
    """
    return f"noted: {text}"


async def of_the_world(facts: dict[str, Any], world: World) -> float:
    """Judge by a world in which everything has happened again."""
    assert facts == await world.all_facts()
    return float(facts.get("balance", facts.get("place", 1)))


def of_the_facts(facts: dict[str, Any]) -> float:
    """Judge by what the world said of itself."""
    return float(facts["balance"])


async def of_the_desk(messages: list[Message], task: dict[str, Any], facts: dict[str, Any], world: World) -> float:
    """Judge a conversation of two sides, by its record and by a world in which everything has happened again."""
    assert facts == await world.all_facts()
    return two_sided(messages=messages, task=task, facts=facts, domain=LIBRARY).score


def says(body: dict[str, Any], _: int) -> Says:
    """The agent's model, and the one that plays the user: both do what seed, turn and conversation tell them."""
    messages = body["messages"]
    turn = sum(message["role"] == "assistant" for message in messages)
    chosen = hashlib.sha256(f"{body.get('seed')}|{turn}|{messages[-1]['content']}".encode()).digest()[0]
    offered = [each["function"]["name"] for each in body.get("tools", ())]
    is_user = messages[0]["role"] == "system" and messages[0]["content"].startswith("You are a reader")
    return _user_says(offered, turn, chosen) if is_user else _agent_says(offered, turn, chosen)


def _user_says(offered: list[str], turn: int, chosen: int) -> Says:
    if "pay" in offered and turn == 1:
        return _calls("pay", {"amount": 1}, turn)
    return answer(f"And {chosen}? ###STOP###" if turn > 2 else f"And {chosen}?")


def _agent_says(offered: list[str], turn: int, chosen: int) -> Says:
    if "who_has" in offered:
        return _calls("who_has", {"book": f"{chosen}"}, turn) if turn % 2 else answer(f"Yes, {chosen}.")
    if not offered:
        return answer("right")
    if turn >= TURNS - 1:
        return answer(f"It is done, {chosen}.")
    if turn % 2 and "note" in offered:
        return _calls("note", {"text": f"{chosen}"}, turn)
    return _calls("deposit", {"amount": chosen}, turn) if turn % 3 < 2 else answer(f"There are {chosen}.")


def _calls(name: str, arguments: dict[str, Any], turn: int) -> Says:
    message = {"role": "assistant", "content": None, "tool_calls": [call(name, arguments, f"c{turn}")]}
    choice = {"index": 0, "message": message | {"reasoning": f"hm {turn}"}, "finish_reason": "tool_calls"}
    return Says(200, {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
