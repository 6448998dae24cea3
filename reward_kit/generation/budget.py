# SPDX-License-Identifier: Apache-2.0
"""A ceiling on what a run may cost, kept before the money is spent.

Sits under the cache, so that answers already paid for need no allowance: cache ∘ budget ∘ HTTP. The model that answers
and the one that judges share one budget.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reward_kit.config_models import Price, Sampling
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.generation.client import ModelClient, model_facts_of
from reward_kit.generation.prices import cost_of
from reward_kit.generation.tokens import most_tokens
from reward_kit.models import Completion, Failure, Message, Usage

__all__ = ["UNBOUNDED_ANSWER_TOKENS", "Budget", "BudgetExhaustedError", "BudgetedClient", "known_price", "within"]

UNBOUNDED_ANSWER_TOKENS = 4096
"""What an answer is taken to be at most, where no max_tokens bounds it."""
_FIRST_REQUESTS = 4
"""Requests on their way at a time until the first answer has shown what they cost: an endpoint may put text of its own
before every prompt, which no estimate can know."""
_MARGIN = 1.1
"""How much larger than any seen so far the next prompt's share of its upper bound may be."""


class BudgetExhaustedError(RewardKitError):
    """The next request could cost more than is left. The run stops cleanly; nothing was sent."""


class Budget:
    """What a run may spend, what it has spent, and what is set apart for requests on their way."""

    def __init__(self, max_cost: float, spent: float) -> None:
        """Start with `spent` already gone: earlier entries of the same run count."""
        self._max_cost = max_cost
        self._spent = spent
        self._reserved = 0.0
        self._on_their_way = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, allowance: float) -> None:
        """Set money apart for a request, or refuse it.

        Requests on their way mostly cost less than was set apart for them: where only that is in the way, it waits.
        """
        while self._spent + self._reserved + allowance > self._max_cost:
            if self._spent + allowance > self._max_cost or not self._on_their_way:
                raise BudgetExhaustedError(
                    f"The next request could cost {allowance:.4g}, and {self._spent:.4g} of "
                    f"`max_cost={self._max_cost:g}` is spent already. Raise `max_cost` and run the same command again "
                    "to go on."
                )
            await self._one_less()
        self._reserved += allowance
        self._on_their_way += 1

    def release(self, allowance: float) -> None:
        """The request is done, or was never answered."""
        self._on_their_way -= 1
        self._reserved = self._reserved - allowance if self._on_their_way else 0.0
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def _one_less(self) -> None:
        """Wait until a request that is on its way is done."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def spend(self, cost: float) -> None:
        """Count money that was spent."""
        self._spent += cost

    @property
    def left(self) -> float:
        """What may still be spent, what is set apart not counted."""
        return self._max_cost - self._spent

    @property
    def overspent(self) -> float:
        """By how much what was spent exceeds the ceiling: requests on their way can cost more than was set apart."""
        return max(0.0, self._spent - self._max_cost)


class BudgetedClient:
    """Refuses a request whose largest likely cost does not fit into what is left of the budget."""

    def __init__(self, inner: ModelClient, budget: Budget, price: Price) -> None:
        """Ask `inner`, at this price, within a budget that others may share."""
        self._inner = inner
        self._budget = budget
        self._price = price
        self._learned = _Learned()
        self._on_their_way = 0
        self._changed = asyncio.Event()

    @property
    def model(self) -> str:
        """The name of the model that the inner client asks."""
        return self._inner.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an answer beside the request."""
        return self._inner.identity

    async def model_facts(self) -> Mapping[str, Any]:
        """What the server says of the model."""
        return await model_facts_of(self._inner)

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """Reserve the largest likely cost, ask, then account for the real one."""
        await self._take_turn()
        request = _RequestSize(most_tokens(messages, tools), sampling.max_tokens or UNBOUNDED_ANSWER_TOKENS, len(draws))
        try:
            allowance = cost_of(self._learned.largest_likely(request), self._price)
            await self._budget.reserve(allowance)
            try:
                outcomes = await self._inner.generate(
                    messages, draws=draws, sampling=sampling, tools=tools, sample_id=sample_id
                )
            finally:
                self._budget.release(allowance)
            self._settle(outcomes, request)
        finally:
            self._on_their_way -= 1
            self._changed.set()
        return outcomes

    async def close(self) -> None:
        """Close the inner client."""
        await self._inner.close()

    async def _take_turn(self) -> None:
        """Wait while nothing is known of real costs and the first requests are on their way."""
        while self._on_their_way >= _FIRST_REQUESTS and not self._learned.anything and self._costs:
            self._changed.clear()
            await self._changed.wait()
        self._on_their_way += 1

    @property
    def _costs(self) -> bool:
        return self._price.input > 0 or self._price.output > 0

    def _settle(self, outcomes: Sequence[Completion | Failure], request: _RequestSize) -> None:
        paid = [o.usage for o in outcomes if isinstance(o, Completion) and o.usage is not None]
        self._budget.spend(sum(cost_of(usage, self._price) for usage in paid))
        self._learned.note(paid, request)


class _RequestSize(NamedTuple):
    """The largest size of a request."""

    prompt_tokens: int
    answer_tokens: int
    draws: int


class _Learned:
    """What the answers so far say of requests to come."""

    def __init__(self) -> None:
        self._prompt_share = 0.0  # real tokens of a prompt over its upper bound, at worst
        self._answer_share = 1.0  # the same for answers; never less than the bound itself

    @property
    def anything(self) -> bool:
        """Whether any answer has said what it used."""
        return self._prompt_share > 0

    def largest_likely(self, request: _RequestSize) -> Usage:
        """What a request may use. Every draw is taken to pay for the prompt, as where an endpoint does not take `n`."""
        share = self._prompt_share * _MARGIN if self.anything else 1.0
        return Usage(
            prompt_tokens=math.ceil(request.prompt_tokens * share) * request.draws,
            completion_tokens=math.ceil(request.answer_tokens * self._answer_share) * request.draws,
        )

    def note(self, paid: Sequence[Usage], request: _RequestSize) -> None:
        """Learn from what a request really used."""
        for usage in paid:
            # The prompt of several answers is told once, on the first of them.
            self._prompt_share = max(self._prompt_share, usage.prompt_tokens / request.prompt_tokens)
        used = sum(usage.completion_tokens for usage in paid)
        self._answer_share = max(self._answer_share, used / (request.answer_tokens * request.draws))


def within(budget: Budget | None, client: ModelClient, price: Price | None, section: str) -> ModelClient:
    """The client, within a budget where there is one. What has no price cannot be bounded: a `ConfigError`."""
    return client if budget is None else BudgetedClient(client, budget, known_price(client.model, price, section))


def known_price(model: str, price: Price | None, section: str) -> Price:
    """The price. What has none cannot be bounded: a `ConfigError`."""
    if price is None:
        raise ConfigError(
            f"`max_cost` is set, but the price of {model!r} is not known. "
            f"Set its price for a million tokens with `{section}.price`, or leave `max_cost` out."
        )
    return price
