"""A ceiling on what a run may cost, kept before the money is spent.

Sits under the cache, so that answers already paid for need no allowance: cache ∘ budget ∘ HTTP. The model that answers
and the one that judges share one budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from reward_kit.config_models import Price, Sampling
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.prices import cost_of, estimate_tokens
from reward_kit.models import Completion, Failure, Message, Usage

__all__ = ["Budget", "BudgetExhaustedError", "BudgetedClient", "within"]

_UNBOUNDED_ANSWER_TOKENS = 4096
"""What an answer is taken to be at most, where no max_tokens bounds it."""


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
                    f"The next request could cost {allowance:.4g}, and of `max_cost={self._max_cost:g}` "
                    f"{self._spent:.4g} is spent. Raise `max_cost` and run the same command again to go on."
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
        """Money is gone."""
        self._spent += cost


class BudgetedClient:
    """Refuses a request whose largest likely cost does not fit into what is left of the budget."""

    def __init__(self, inner: ModelClient, budget: Budget, price: Price) -> None:
        """Ask `inner`, at this price, within a budget that others may share."""
        self._inner = inner
        self._budget = budget
        self._price = price
        self._underestimate = 1.0  # how far real costs have exceeded the estimate at worst

    @property
    def model(self) -> str:
        """The model's name."""
        return self._inner.model

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an answer beside the request."""
        return self._inner.identity

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
        estimate = self._largest_likely_cost(messages, len(draws), sampling)
        allowance = estimate * self._underestimate
        await self._budget.reserve(allowance)
        try:
            outcomes = await self._inner.generate(
                messages, draws=draws, sampling=sampling, tools=tools, sample_id=sample_id
            )
        finally:
            self._budget.release(allowance)
        self._settle(outcomes, estimate)
        return outcomes

    async def close(self) -> None:
        """Close what is underneath."""
        await self._inner.close()

    def _largest_likely_cost(self, messages: Sequence[Message], draws: int, sampling: Sampling) -> float:
        # Every draw is taken to pay for the prompt again, as it does where an endpoint does not take `n`.
        answer = sampling.max_tokens or _UNBOUNDED_ANSWER_TOKENS
        usage = Usage(prompt_tokens=estimate_tokens(messages) * draws, completion_tokens=answer * draws)
        return cost_of(usage, self._price)

    def _settle(self, outcomes: Sequence[Completion | Failure], estimate: float) -> None:
        paid = [o.usage for o in outcomes if isinstance(o, Completion) and o.usage is not None]
        real = sum(cost_of(usage, self._price) for usage in paid)
        self._budget.spend(real)
        if estimate > 0:
            self._underestimate = max(self._underestimate, real / estimate)


def within(budget: Budget | None, client: ModelClient, price: Price | None, section: str) -> ModelClient:
    """The client, within a budget where there is one. What has no price cannot be bounded: a `ConfigError`."""
    if budget is None:
        return client
    if price is None:
        raise ConfigError(
            f"`max_cost` is set, but the price of {client.model!r} is not known. "
            f"Set its price for a million tokens with `{section}.price`, or leave `max_cost` out."
        )
    return BudgetedClient(client, budget, price)
