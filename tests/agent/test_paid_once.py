# SPDX-License-Identifier: Apache-2.0
"""Each reply is counted once, wherever worlds fail, whatever fails when they are tried again, and however often a run
is killed and entered again."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reward_kit.agent import Answer, Episodes, World
from reward_kit.agent.branching import Branches
from reward_kit.agent.environment import environment_of
from reward_kit.config_models import FIRST_BRANCH, BranchingConfig, Price, Sampling
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.worlds import Model, says, settings

SAMPLE = Sample(id="s", messages=[Message(role="user", content="Go.")])
TURNS = 4
PER_REPLY = 10
"""Tokens of a prompt, by the model of these tests."""


class Killed(BaseException):
    """The process has ended."""


class Unsteady(World):
    """A world that fails wherever the dice say so, and else is always the same."""

    dice: ClassVar[random.Random]
    share: ClassVar[float] = 0.0
    durability = "replay"

    def __init__(self, sample: Sample) -> None:
        self._fail()
        self.turn = 0

    def _fail(self) -> None:
        if self.dice.random() < self.share:
            raise RuntimeError("out of order")

    def start(self) -> list[Message]:
        self._fail()
        return [says("I speak first."), Message(role="user", content="Yes?")]

    async def answer(self, message: Message) -> Answer:
        self._fail()
        self.turn += 1
        return Answer([Message(role="user", content=f"Turn {self.turn}.")], done=self.turn >= TURNS)

    def facts(self) -> dict[str, Any]:
        self._fail()
        return {}

    def snapshot(self) -> bytes:
        self._fail()
        return bytes([self.turn])

    def restore(self, state: bytes) -> None:
        self._fail()
        (self.turn,) = state


@pytest.mark.parametrize("durability", ["replay", "snapshot", "restart"])
@pytest.mark.parametrize("is_branch", [False, True])
async def test_all_replies_are_counted_once(durability: str, is_branch: bool, tmp_path: Path) -> None:
    draw = FIRST_BRANCH if is_branch else 0
    failed = killed = 0
    for seed in range(30):
        dice = random.Random(seed)
        world = type("World", (Unsteady,), {"dice": dice})
        Unsteady.share = 0.0
        branches = Branches(BranchingConfig(at=[2], total=1), 1) if is_branch else None
        known: dict[int, Rollout] = {}
        asked = 0

        async def played(
            draw: int, model: Model, world: type[World] = world, seed: int = seed, branches: Branches | None = branches,
            known: dict[int, Rollout] = known, retries: int = dice.randrange(3),
        ) -> Rollout:  # fmt: skip
            with TurnJournal(tmp_path / f"{seed}.jsonl") as journal:
                play = Episodes(
                    model, Sampling(), Price(input=1.0, output=0.0), environment_of(world),
                    settings(durability=durability, world_retries=retries), journal=journal, branches=branches,
                    known=lambda _, draw: known.get(draw),
                )  # fmt: skip
                (rollout,) = await play(SAMPLE, [draw])
            known[draw] = Rollout.model_validate_json(rollout.model_dump_json(exclude_none=True))
            return known[draw]

        if is_branch:
            assert (await played(0, Model(lambda *_: says("So.")))).failure is None
        for entry in range(8):
            Unsteady.share = 0.25 if entry < 6 else 0.0
            left = dice.choice([1, 2, 3, 99])

            def reply(messages: Any, _: int, end: int = asked + left, entry: int = entry) -> Message:
                nonlocal asked
                if entry < 6 and asked >= end:
                    raise Killed
                asked += 1
                return says(f"So, {entry}.")

            try:
                rollout = await played(draw, Model(reply))
            except Killed:
                killed += 1
                continue
            told = 0 if rollout.usage is None else rollout.usage.prompt_tokens
            assert told == PER_REPLY * asked, (seed, entry, rollout.failure)
            assert rollout.cost == pytest.approx(told / 1e6), (seed, entry)
            if rollout.failure is None:
                break
            failed += 1
        else:
            raise AssertionError(f"{seed}: it never ended")
    assert failed > 20 and killed > 2, (failed, killed)
