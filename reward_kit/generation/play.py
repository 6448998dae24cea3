# SPDX-License-Identifier: Apache-2.0
"""Plays: how a sample becomes rollouts. One answer, and an agent's episode (`agent/episode.py`), have the same type.

(sample, draws) → one Rollout per draw
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reward_kit.config_models import Price, Sampling
from reward_kit.generation.client import ModelClient
from reward_kit.generation.prices import cost_of, spending
from reward_kit.generation.usage import summed, used_by
from reward_kit.models import Completion, Failure, Message, Rollout, Sample
from reward_kit.redaction import without_secrets
from reward_kit.utils.clock import now_to_the_millisecond
from reward_kit.utils.trusted import trusted

__all__ = ["Play", "SingleTurn"]

_answered = trusted(Rollout)


class Play(Protocol):
    """Anything that answers a sample as often as it is asked to."""

    async def __call__(self, sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        """One rollout per draw, in the order of `draws`. A draw that fails is a rollout with a failure."""
        ...


class SingleTurn:
    """Ask once, take the answer."""

    def __init__(self, client: ModelClient, sampling: Sampling, price: Price | None) -> None:
        """Play with `client`; `price` is what its tokens cost, where that is known."""
        self._client = client
        self._sampling = sampling
        self._given = without_secrets(sampling.given())
        self._price = price

    async def __call__(self, sample: Sample, draws: Sequence[int]) -> list[Rollout]:
        """Ask for all draws at once."""
        outcomes = await self._client.generate(
            sample.messages, draws=draws, sampling=self._sampling, tools=sample.tools, sample_id=sample.id
        )
        now = now_to_the_millisecond()
        return [self._rollout(sample, draw, outcome, now) for draw, outcome in zip(draws, outcomes, strict=True)]

    def _rollout(self, sample: Sample, draw: int, outcome: Completion | Failure, now: str) -> Rollout:
        if not isinstance(outcome, Completion):
            used = used_by(outcome)
            return Rollout(
                sample=sample, response_index=draw, model=self._client.model, sampling=self._given,
                usage=summed(used), cost=spending(used, self._price) if used else None, generated_at=now,
                failure=outcome,
            )  # fmt: skip
        return _answered(
            sample=sample,
            response_index=draw,
            turns=[_alone(outcome.message)],
            model=outcome.model or self._client.model,
            sampling=self._given,
            finish_reason=outcome.finish_reason,
            usage=outcome.usage if outcome.retried is None else summed(used_by(outcome)),
            cost=self._cost(outcome),
            latency_ms=outcome.latency_ms,
            cached=outcome.cached,
            generated_at=now,
            tokens=outcome.tokens,
        )

    def _cost(self, completion: Completion) -> float | None:
        if completion.cached:
            return 0.0
        usage = completion.usage
        if completion.retried is not None:
            return spending(used_by(completion), self._price)
        if self._price is None:
            return None if usage is None else usage.cost
        return cost_of(usage, self._price) if usage is not None else 0.0


def _alone(message: Message) -> Message:
    """The answer without what is only for the endpoint, should the conversation go on: here it does not."""
    return message if message.sent_back is None else message.model_copy(update={"sent_back": None})
