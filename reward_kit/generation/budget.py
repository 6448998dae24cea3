# SPDX-License-Identifier: Apache-2.0
"""A ceiling on what a run may cost, kept before the money is spent.

Sits under the cache, so that answers already paid for need no allowance: cache ∘ budget ∘ HTTP. The model that answers
and the one that judges share one budget.

    reserve the most that a call may cost ─▶ ask ─▶ a reply that is no answer: count it; is there money to ask again?
                                                └─▶ release, and count what the answers cost
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from reward_kit.config_models import Price, Sampling
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.generation.client import ModelClient, model_facts_of
from reward_kit.generation.commons import PURSE
from reward_kit.generation.prices import cost_of
from reward_kit.generation.tokens import most_usage
from reward_kit.generation.usage import used_by
from reward_kit.models import Completion, Failure, Message, Usage

__all__ = ["Budget", "BudgetExhaustedError", "BudgetedClient", "known_price", "within"]

_AHEAD = 0.05
_REQUESTS_AHEAD = 4
"""How much more than what may be spent now is noted: a part of it, or so many requests."""
_MARGIN = 1.1
"""How much further than any seen so far the next request may go beyond what should be its most."""


class BudgetExhaustedError(RewardKitError):
    """The next request could cost more than is left. The run stops cleanly; nothing was sent."""


class Budget:
    """What a run may spend, what it has spent, and what is set apart for requests on their way."""

    def __init__(
        self,
        max_cost: float | None,
        spent: float,
        *,
        at_most: bool = False,
        ahead: Callable[[float], None] | None = None,
    ) -> None:
        """Start with `spent` already gone: earlier entries of the same run count, `at_most` where that is not sure.

        Without a `max_cost`, nothing is refused, and everything is counted. `ahead` is told how much may be spent by
        and by, before it is.
        """
        self.is_limited = max_cost is not None
        """Whether there is a ceiling."""
        self._max_cost = math.inf if max_cost is None else max_cost
        self._spent = spent
        self.at_most = at_most
        """Whether a part of what is counted was never told: it may have been less."""
        self._ahead = ahead
        self._noted = spent
        self.fetched = 0.0
        """What answers cost that lie on this disk: nobody needs to note it before it is counted."""
        self._reserved = 0.0
        self._on_their_way = 0
        self._held_up = 0
        """Of those on their way, how many wait to be sent again."""
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
        self._note_ahead(allowance)

    async def may_go_on(self) -> bool:
        """Whether a request that is on its way may be sent once more. It waits where only others are in the way."""
        while self._spent + self._reserved > self._max_cost:
            if self._on_their_way - self._held_up <= 1:  # the others wait, too
                return False
            self._held_up += 1
            try:
                await self._one_less()
            finally:
                self._held_up -= 1
        return True

    def release(self, allowance: float) -> None:
        """The request is done, or was never answered."""
        self._on_their_way -= 1
        self._reserved = self._reserved - allowance if self._on_their_way else 0.0
        self._tell_waiting()

    def lower(self, allowance: float, to: float) -> None:
        """A part of what was set apart is not needed any more: the request goes on with less."""
        self._reserved -= allowance - to
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    async def _one_less(self) -> None:
        """Wait until a request that is on its way is done."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def spend(self, cost: float, *, at_most: bool = False) -> None:
        """Count money that was spent, or at most was."""
        self._spent += cost
        self.at_most = self.at_most or at_most
        self._note_ahead(0.0)

    def spend_fetched(self, cost: float, *, at_most: bool = False) -> None:
        """Count what an answer cost that lies on this disk."""
        self.fetched += cost
        self._noted += cost
        self.spend(cost, at_most=at_most)

    def _note_ahead(self, allowance: float) -> None:
        """Where more may be spent than was noted: note more than that, so that it is seldom done."""
        may_be = self._spent + self._reserved
        if self._ahead is not None and may_be > self._noted:
            more = max(_AHEAD * may_be, _REQUESTS_AHEAD * allowance)
            # What is set apart beyond the ceiling, after a reply that was no answer, is given back and not spent.
            noted = max(self._spent, min(self._max_cost, may_be + more))
            if noted > self._noted:
                self._noted = noted
                self._ahead(noted)

    @property
    def spent(self) -> float:
        """What was spent, earlier entries included."""
        return self._spent

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
        try:
            purse = _Purse(self._budget, self._price, self._learned, partial(most_usage, messages, tools, sampling, 1))
            await purse.set_apart(len(draws))
            mine = PURSE.set(purse)
            try:
                outcomes = await self._inner.generate(
                    messages, draws=draws, sampling=sampling, tools=tools, sample_id=sample_id
                )
            except asyncio.CancelledError:
                self._budget.spend(purse.held, at_most=True)  # what was sent may be answered, and billed
                raise
            finally:
                PURSE.reset(mine)
                self._budget.release(purse.held)
            return purse.settled(outcomes)
        finally:
            self._learned.anything = True
            self._on_their_way -= 1
            self._changed.set()

    async def close(self) -> None:
        """Close the inner client."""
        await self._inner.close()

    async def _take_turn(self) -> None:
        """Wait while nothing is known of real costs and the first request is on its way.

        An endpoint may put text of its own before every prompt, or have the model think beyond max_tokens.
        """
        while self._budget.is_limited and self._on_their_way and not self._learned.anything and _costs(self._price):
            self._changed.clear()
            await self._changed.wait()
        self._on_their_way += 1


def _costs(price: Price) -> bool:
    return price.input > 0 or price.output > 0


class _Learned:
    """What the answers so far say of requests to come: how far they went beyond what should be their most."""

    def __init__(self) -> None:
        self.prompt = self.answer = 1.0
        self.anything = False
        """Whether anything has come back."""

    def note(self, used: Usage, most: Usage, draws: int) -> None:
        """Learn from what a request really used. The prompt of several answers is told once for all of them."""
        self.prompt = max(self.prompt, _beyond(used.prompt_tokens, most.prompt_tokens))
        self.answer = max(self.answer, _beyond(used.completion_tokens, most.completion_tokens * draws))


def _beyond(used: int, most: int) -> float:
    return used / most * _MARGIN if used > most else 1.0


class _Purse:
    """What is set apart for one call."""

    def __init__(self, budget: Budget, price: Price, learned: _Learned, most: Callable[[], Usage]) -> None:
        """Each draw uses at most `most()`, and what was `learned` beyond it. What costs nothing needs neither."""
        self._budget, self._price, self._learned, self._most = budget, price, learned, most
        self._costs = _costs(price)
        self._lost = self._of_a_draw = 0.0
        self.held = 0.0
        """What is set apart now."""

    async def set_apart(self, draws: int) -> None:
        """Set apart what so many draws may cost, or refuse the call."""
        self._of_a_draw = cost_of(self.most(1), self._price) if self._costs else 0.0
        await self._budget.reserve(self._of_a_draw * draws)
        self.held = self._of_a_draw * draws

    @cached_property
    def _each(self) -> Usage:
        return self._most()

    def most(self, draws: int) -> Usage:
        """What is set apart for so many draws."""
        prompt, answer = self._each.prompt_tokens * draws, self._each.completion_tokens * draws
        return Usage(
            prompt_tokens=math.ceil(prompt * self._learned.prompt),
            completion_tokens=math.ceil(answer * self._learned.answer),
            at_most=True,
        )

    def lose(self, usage: Usage) -> None:
        """Count at once what a reply used that is no answer, or not all of them."""
        cost = cost_of(usage, self._price)
        self._lost += cost
        self._budget.spend(cost, at_most=bool(usage.at_most))

    def give_back(self, draws: int) -> None:
        """Set nothing apart any more for so many draws: they came, and what they used is counted."""
        less = max(0.0, self.held - self._of_a_draw * draws)
        self._budget.lower(self.held, less)
        self.held = less

    async def may_go_on(self) -> bool:
        """Whether there is money to ask again."""
        return await self._budget.may_go_on()

    def settled(self, outcomes: list[Completion | Failure]) -> list[Completion | Failure]:
        """The outcomes, once what they cost is counted. Answers of which nobody told what they used have the most."""
        used = [usage for outcome in outcomes for usage in used_by(outcome)]
        if not used and (place := _first_answer(outcomes)) is not None:
            answers = sum(isinstance(outcome, Completion) for outcome in outcomes)
            used = [self.most(answers)]
            outcomes = [*outcomes]
            outcomes[place] = outcomes[place].model_copy(update={"usage": used[0]})
        if self._costs:
            for usage in used:
                if not usage.at_most:
                    self._learned.note(usage, self._each, len(outcomes))
        if cost := sum([cost_of(usage, self._price) for usage in used]) - self._lost:
            self._budget.spend(cost, at_most=cost > 0 and any(usage.at_most for usage in used))
        return outcomes


def _first_answer(outcomes: Sequence[Completion | Failure]) -> int | None:
    answered = (place for place, outcome in enumerate(outcomes) if isinstance(outcome, Completion))
    return next(answered, None)


def within(budget: Budget | None, client: ModelClient, price: Price | None, section: str) -> ModelClient:
    """The client, within a budget where there is one. What has no price cannot be bounded: a `ConfigError`."""
    if budget is None or (price is None and not budget.is_limited):
        return client
    return BudgetedClient(client, budget, known_price(client.model, price, section))


def known_price(model: str, price: Price | None, section: str) -> Price:
    """The price. What has none cannot be bounded: a `ConfigError`."""
    if price is None:
        raise ConfigError(
            f"`max_cost` is set, but the price of {model!r} is not known. "
            f"Set its price for a million tokens with `{section}.price`, or leave `max_cost` out."
        )
    return price
