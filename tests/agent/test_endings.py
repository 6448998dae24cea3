# SPDX-License-Identifier: Apache-2.0
"""How episodes end, and whether they were cut off: the same in a run, and in a session that others step through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import pytest

from reward_kit.agent import Answer, Episodes, World
from reward_kit.agent.environment import environment_of
from reward_kit.config_models import Price, Sampling
from reward_kit.integrations.world_session import WorldSession
from reward_kit.models import Completion, Ended, Message, Rollout, Sample, Usage
from tests.agent.worlds import SAMPLE, Account, Model, Walk, call, calls, says, settings

PRICE = Price(input=1e6, output=1e6)
SAVE = calls(call("deposit", {"amount": 1}, "id"))
WRONG = calls(call("withdraw", {"amount": 1}, "id"))


class Silent(World):
    """A world that is done at once, and says so by nothing but a reward."""

    def __init__(self, sample: Sample) -> None:
        pass

    def answer(self, message: Message) -> Answer:
        return Answer([], reward=1.0, done=True)


class Slow(Account):
    """An account that takes its time."""

    async def answer(self, message: Message) -> Answer:
        await asyncio.sleep(0.02)
        return Answer(await self.use_tools(message), done=not message.tool_calls)


class End(NamedTuple):
    """What is played, and how that must end."""

    ended: Ended
    cut: bool
    script: Sequence[Message]
    limits: dict[str, Any] = {}  # noqa: RUF012 - nobody writes into it
    world: type[World] = Account


ENDS = {
    "the world is done": End("done", False, [says("right")] * 9, world=Walk),
    "the world is done, and gives a reward only": End("done", False, [says("Done.")], world=Silent),
    "an answer without a call": End("answered", False, [SAVE, says("Done.")]),
    "a text that means the end": End("stopped", False, [SAVE, says("So: STOP")], {"stop_pattern": "STOP"}),
    "a tool that means the end": End("stopped", False, [SAVE] * 9, {"stop_tools": ["deposit"]}),
    "turns": End("max_turns", True, [SAVE] * 9, {"max_turns": 2}),
    "tool calls": End("max_tool_calls", True, [SAVE] * 9, {"max_tool_calls": 2}),
    "wrong calls": End("bad_calls", True, [WRONG] * 9, {"max_bad_calls": 2}),
    "tokens": End("max_tokens", True, [SAVE] * 9, {"max_tokens": 6}),
    "context": End("context", True, [SAVE] * 9, {"max_context_tokens": 13}),
    "money": End("money", True, [SAVE] * 9, {"max_cost": 26.0}),
    "seconds": End("timeout", True, [SAVE] * 9, {"max_seconds": 0.01}, Slow),
    "the last limit and the end at once": End("answered", False, [SAVE, says("Done.")], {"max_turns": 2}),
}


def test_every_way_to_end_is_tried() -> None:
    assert {end.ended for end in ENDS.values()} == set(get_args(Ended))


async def in_a_run(end: End) -> Rollout:
    play = Episodes(Model(end.script), Sampling(), PRICE, environment_of(end.world), settings(**end.limits))
    (rollout,) = await play(SAMPLE, [0])
    return rollout


async def in_a_session(end: End) -> Rollout:
    session = WorldSession(environment_of(end.world), settings(**end.limits), PRICE)
    await session.reset_async(SAMPLE)
    for message in end.script:
        await session.act_async(Completion(message=message, usage=Usage(prompt_tokens=10, completion_tokens=3)))
        if session.ended is not None:
            break
    rollout = await session.rollout_async()
    await session.close_async()
    return rollout


@pytest.mark.parametrize("name", ENDS)
async def test_an_end_is_the_same_in_a_run_and_in_a_session(name: str) -> None:
    end = ENDS[name]
    for rollout in (await in_a_run(end), await in_a_session(end)):
        assert rollout.failure is None
        assert (rollout.ended, rollout.truncated) == (end.ended, end.cut)


async def test_what_nobody_ended_was_cut_off_by_who_stopped_playing() -> None:
    rollout = await in_a_session(End("done", True, [SAVE]))
    assert (rollout.ended, rollout.truncated) == (None, True)


async def test_an_answer_that_breaks_off_is_cut_off_however_the_episode_ended() -> None:
    session = WorldSession(environment_of(Account))
    await session.reset_async(SAMPLE)
    await session.act_async(Completion(message=says("And so"), finish_reason="length"))
    rollout = await session.rollout_async()
    await session.close_async()
    assert (rollout.ended, rollout.truncated) == ("answered", True)
