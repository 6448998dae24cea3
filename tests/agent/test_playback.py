# SPDX-License-Identifier: Apache-2.0
"""Recorded episodes as a model: what was said before is said again, turn by turn and draw by draw."""

from __future__ import annotations

from reward_kit.agent.playback import Playback
from reward_kit.config_models import Sampling
from reward_kit.generation.client import ModelClient
from reward_kit.models import Completion, Failure, Message, Rollout, Sample

ASKED = [Message(role="user", content="hello")]


def says(*texts: str) -> list[Message]:
    return [Message(role="assistant", content=text) for text in texts]


async def ask(client: Playback, messages: list[Message], *draws: int) -> list[str]:
    answers = await client.generate(messages, draws=draws, sampling=Sampling(), sample_id="s")
    return [answer.message.text if isinstance(answer, Completion) else f"!{answer.message}" for answer in answers]


async def test_the_nth_turn_is_the_nth_that_was_recorded() -> None:
    client = Playback({("s", 0): says("a", "b"), ("s", 1): says("c")})
    assert isinstance(client, ModelClient)
    assert await ask(client, ASKED, 0, 1) == ["a", "c"]
    assert await ask(client, [*ASKED, *says("a"), *ASKED], 0) == ["b"]


async def test_what_was_not_recorded_is_a_failure_of_that_draw() -> None:
    client = Playback({("s", 0): says("a"), ("s", 1): Failure(stage="generate", type="ProviderError", message="down")})
    assert await ask(client, [*ASKED, *says("a")], 0) == [
        "!The record of answer 0 to sample 's' has no turn 1: there are 1."
    ]
    assert await ask(client, ASKED, 1, 2, 0) == ["!down", "!The record of answer 2 to sample 's' has no episode.", "a"]


async def test_rollouts_are_played_without_the_turns_of_their_prompt() -> None:
    sample = Sample(id="s", messages=[*says("may I help?"), *ASKED])
    rollout = Rollout(sample=sample, response_index=3, turns=[*says("a"), *ASKED, *says("b")])
    failed = Rollout(sample=sample, response_index=4, failure=Failure(stage="generate", type="X", message="lost"))
    client = Playback.of([rollout, failed])
    assert await ask(client, sample.messages, 3, 4) == ["a", "!lost"]
    assert await ask(client, rollout.messages[:4], 3) == ["b"]
