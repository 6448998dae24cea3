# SPDX-License-Identifier: Apache-2.0
"""A model that says what was said before: recorded episodes, played again for tests that cost nothing.

client = Playback.of(read_rollouts(...))       # every draw says what it said in its rollout
client = Playback({("task-1", 0): [...]})      # or what you write down for it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reward_kit.config_models import Sampling
from reward_kit.models import Completion, Failure, Message, Rollout

__all__ = ["Playback"]


class Playback:
    """A client whose n-th turn in an episode is the n-th of those recorded for that sample and draw.

    A turn that was not recorded is a failure of that episode, and so is a recorded `Failure`.
    """

    def __init__(
        self,
        episodes: Mapping[tuple[str, int], Sequence[Message] | Failure],
        *,
        model: str = "playback",
        turns_in_prompts: Mapping[str, int] | None = None,
    ) -> None:
        """Take the assistant turns of each episode, by sample id and draw.

        `turns_in_prompts` says of a sample how many assistant turns its own messages have, where they have any.
        """
        self._episodes = dict(episodes)
        self._model = model
        self._before = dict(turns_in_prompts or {})

    @classmethod
    def of(cls, rollouts: Iterable[Rollout], *, model: str = "playback") -> Playback:
        """Play what rollouts hold."""
        episodes: dict[tuple[str, int], Sequence[Message] | Failure] = {}
        before: dict[str, int] = {}
        for rollout in rollouts:
            said = [turn for turn in rollout.turns if turn.role == "assistant"]
            key = (rollout.sample.id, rollout.response_index)
            episodes[key] = rollout.failure if rollout.failure is not None and not said else said
            before[rollout.sample.id] = _assistant_turns(rollout.sample.messages)
        return cls(episodes, model=model, turns_in_prompts=before)

    @property
    def model(self) -> str:
        """The name it answers to."""
        return self._model

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines its answers; a cache in front of it would only be in the way."""
        return {"playback": self._model}

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """The recorded turn of each draw."""
        number = _assistant_turns(messages) - self._before.get(sample_id, 0)
        return [self._turn(sample_id, draw, number) for draw in draws]

    def _turn(self, sample_id: str, draw: int, number: int) -> Completion | Failure:
        said = self._episodes.get((sample_id, draw))
        if isinstance(said, Failure):
            return said
        if said is None or number >= len(said):
            told = "no episode" if said is None else f"no turn {number}: there are {len(said)}"
            return Failure(
                stage="generate",
                type="GenerationError",
                message=f"The record of answer {draw} to sample {sample_id!r} has {told}.",
            )
        return Completion(message=said[number], finish_reason="tool_calls" if said[number].tool_calls else "stop")

    async def close(self) -> None:
        """There is nothing to give back."""


def _assistant_turns(messages: Iterable[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)
