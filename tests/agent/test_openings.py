# SPDX-License-Identifier: Apache-2.0
"""How episodes begin: worlds that are over at once, that open the conversation, or that hang while they are made."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reward_kit import evaluate
from reward_kit.agent import Answer, Episodes, World
from reward_kit.agent.environment import Environment, environment_of, finished
from reward_kit.agent.tools import Tool
from reward_kit.agent.users import ScriptedUser, WithUser
from reward_kit.config_models import Sampling
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal, turn_line
from reward_kit.utils import exact_json
from tests.agent.worlds import SAMPLE, Model, essence, says, settings


async def played(environment: Environment, model: Model, samples: list[Sample], **given: Any) -> list[Rollout]:
    play = Episodes(model, Sampling(), None, environment, settings(**given))
    rollouts = await asyncio.gather(*(play(sample, [0]) for sample in samples))
    return [rollout for (rollout,) in rollouts]


class Over(World):
    """A world that is over before anybody has done anything."""

    def __init__(self, sample: Sample) -> None:
        pass

    def start(self) -> Answer:
        return Answer([Message(role="user", content="Never mind.")], done=True)

    def facts(self) -> dict[str, Any]:
        return {"over": True}


async def test_a_world_that_is_over_at_its_start_asks_nobody(tmp_path: Path) -> None:
    model = Model([says("Hello?")])
    (rollout,) = await played(environment_of(Over), model, [SAMPLE])
    assert not model.asked
    assert (rollout.ended, rollout.steps, rollout.facts, rollout.failure) == ("done", [], {"over": True}, None)
    path = tmp_path / "episodes.jsonl"
    for _ in range(2):
        with TurnJournal(path) as journal:
            play = Episodes(model, Sampling(), None, environment_of(Over), settings(), journal=journal)
            assert essence((await play(SAMPLE, [0]))[0]) == essence(rollout)
    assert not model.asked


class Opens(World):
    """A world that says what is to be done."""

    def __init__(self, sample: Sample) -> None:
        self.asks = sample.columns.get("asks")

    def start(self) -> Any:
        return self.asks or ()


def over(facts: dict[str, Any], response: str) -> float:
    return float(response == "4")


def test_a_row_may_ask_nothing_where_the_world_opens_the_conversation() -> None:
    rows: list[dict[str, Any]] = [{"asks": "2 + 2?"}, {"asks": "2 + 2?", "messages": []}, {"asks": None}]
    result = evaluate(
        rows, over, model="mock", mock={"responses": ["4"]}, agent={"environment": f"{__file__}:Opens"},
        cache={"enabled": False},
    )  # fmt: skip
    assert (result.judged, result.mean_score, result.failed) == (2, 1.0, 1)
    (why,) = result.summary["failure_examples"].values()
    assert "asks nothing" in why and "return messages from `start`" in why


class Hanging(World):
    """A world that hangs in one of its methods, for the first sample alone."""

    hangs_in: ClassVar[str] = "__init__"
    let_go: ClassVar[threading.Event] = threading.Event()

    sample: Sample

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self._hang("__init__")

    @property
    def tools(self) -> list[Tool]:
        self._hang("tools")
        return []

    def _hang(self, where: str) -> None:
        if where == self.hangs_in and self.sample.id == "0":
            self.let_go.wait(300)

    def start(self) -> str:
        self._hang("start")
        return "Go on."

    def answer(self, message: Message) -> Answer:
        self._hang("answer")
        return Answer(done=True)

    def facts(self) -> dict[str, Any]:
        self._hang("facts")
        return {}

    def close(self) -> None:
        self._hang("close")


class MadeAnew(World):
    """A world that hangs while it is made, and has no constructor of the usual name."""

    def __new__(cls, sample: Sample) -> MadeAnew:
        Hanging(sample)._hang("__new__")
        return super().__new__(cls)


class OpensThem(Environment):
    """An environment with plain methods."""

    def open(self, sample: Sample) -> World:  # type: ignore[override]  # a plain `def` does, too
        world = Hanging(sample)
        world._hang("open")
        return world

    def close(self) -> None:  # type: ignore[override]  # the same
        pass


def _nothing() -> str:
    """Do nothing."""
    return ""


WRAPS: dict[str, Callable[[Any], Environment]] = {
    "nothing": environment_of,
    "a user": lambda named: WithUser(environment_of(named), ScriptedUser(["And?"])),
    "tools": lambda named: environment_of(named, [_nothing]),
    "tools and a user": lambda named: WithUser(environment_of(named, [_nothing]), ScriptedUser(["And?"])),
}
OTHERS: dict[str, Any] = {"__new__": MadeAnew, "open": OpensThem}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("where", ["__init__", "__new__", "open", "tools", "start", "answer", "facts", "close"])
async def test_what_hangs_in_a_world_costs_its_own_episode_alone(
    where: str, wrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hanging, "hangs_in", where)
    monkeypatch.setattr(Hanging, "let_go", threading.Event())
    environment = WRAPS[wrap](OTHERS.get(where, Hanging))
    samples = [Sample(id=str(number), messages=SAMPLE.messages) for number in range(5)]
    turns_of_the_loop = 0

    async def count() -> None:
        nonlocal turns_of_the_loop
        while True:
            await asyncio.sleep(0.002)
            turns_of_the_loop += 1

    counting = asyncio.create_task(count())
    began = time.monotonic()
    try:
        rollouts = await played(
            environment, Model(lambda *_: says("Done.")), samples, world_timeout=1.0, world_retries=0
        )
    finally:
        Hanging.let_go.set()
        counting.cancel()
    assert time.monotonic() - began < 250, "nobody waits for the world that hangs"
    await finished(environment.close())
    failed = [rollout.sample.id for rollout in rollouts if rollout.failure is not None]
    assert failed == ([] if where == "close" else ["0"])
    assert turns_of_the_loop > 20, "the others' time goes on meanwhile"


async def test_the_seconds_of_tools_count_when_an_episode_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"

    class Slow(World):
        """A world that goes on."""

        def __init__(self, sample: Sample) -> None:
            pass

        async def answer(self, message: Message) -> Answer:
            return Answer([Message(role="user", content="Go on.")])

    async def play(limit: float) -> Rollout:
        with TurnJournal(path) as journal:
            config = settings(max_seconds=limit, max_turns=3)
            play = Episodes(
                Model(lambda *_: says("On.")), Sampling(), None, environment_of(Slow), config, journal=journal
            )
            (rollout,) = await play(SAMPLE, [0])
        return rollout

    await play(1e6)
    lines = path.read_text().splitlines()[:3]
    assert '"seconds":' in lines[2]
    # The same turn, as of a world that took an hour over it.
    answer = exact_json.loads(lines[2])["answer"] | {"seconds": 3600.0}
    path.write_bytes("".join(f"{line}\n" for line in lines[:2]).encode() + turn_line("s", 0, 0, b"answer", answer))
    rollout = await play(1000.0)
    assert (rollout.ended, len(rollout.steps or ())) == ("timeout", 1)
