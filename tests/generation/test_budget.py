# SPDX-License-Identifier: Apache-2.0
"""A budget holds whatever the endpoint says of its tokens: what is above it was on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from reward_kit.config_models import Price, Sampling
from reward_kit.generation.budget import Budget, BudgetedClient, BudgetExhaustedError
from reward_kit.models import Completion, Failure, Message, Usage

PROMPT = [Message(role="user", content="What is 2 + 2?")]
PRICE = Price(input=1.0, output=2.0)


class Endpoint:
    """Answers after a turn of the loop, and says that each prompt had so many tokens."""

    model = "m"
    identity: ClassVar[dict[str, Any]] = {}

    def __init__(self, prompt_tokens: int, answer_tokens: int) -> None:
        self.usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=answer_tokens)
        self.asked = 0
        self.on_their_way = 0
        self.answered = 0
        self.most_at_first = 0
        """Requests on their way at a time before any was answered."""
        self.most = 0

    async def generate(
        self, messages: Sequence[Message], *, draws: Sequence[int], **_: Any
    ) -> list[Completion | Failure]:
        self.asked += 1
        self.on_their_way += 1
        self.most = max(self.most, self.on_their_way)
        if not self.answered:
            self.most_at_first = max(self.most_at_first, self.on_their_way)
        await asyncio.sleep(0)
        self.on_their_way -= 1
        self.answered += 1
        return [
            Completion(message=Message(role="assistant", content="4"), usage=self.usage, finish_reason="stop")
            for _ in draws
        ]

    async def close(self) -> None:
        """Nothing is open."""


async def spend_all(endpoint: Endpoint, max_cost: float, requests: int, max_tokens: int) -> Budget:
    budget = Budget(max_cost, 0.0)
    client = BudgetedClient(endpoint, budget, PRICE)
    sampling = Sampling(max_tokens=max_tokens)
    asked = (client.generate(PROMPT, draws=[draw], sampling=sampling) for draw in range(requests))
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(outcome, list | BudgetExhaustedError) for outcome in outcomes)
    return budget


@settings(max_examples=30, deadline=None)
@given(prompt=st.integers(1, 100_000), answer=st.integers(0, 64), ceiling=st.floats(1e-5, 1.0))
def test_only_what_was_on_its_way_can_exceed_the_ceiling(prompt: int, answer: int, ceiling: float) -> None:
    endpoint = Endpoint(prompt, answer)
    budget = asyncio.run(spend_all(endpoint, ceiling, 60, 64))
    each = (prompt * PRICE.input + answer * PRICE.output) / 1e6
    assert budget.overspent <= each + 1e-12


def test_until_the_first_answer_only_one_is_asked() -> None:
    endpoint = Endpoint(2_500, 5)
    asyncio.run(spend_all(endpoint, 100.0, 40, 64))
    assert endpoint.asked == 40
    assert endpoint.most_at_first == 1
    assert endpoint.most > 4  # the others were held back only until something was known


def test_an_endpoint_that_counts_25_times_more_is_noticed_after_the_first_answers() -> None:
    endpoint = Endpoint(prompt_tokens=25 * 100, answer_tokens=5)
    budget = asyncio.run(spend_all(endpoint, 0.01, 100, 16))
    assert endpoint.asked < 10
    assert budget.overspent < 0.005


def test_what_is_left_is_used_as_far_as_it_goes() -> None:
    endpoint = Endpoint(prompt_tokens=12, answer_tokens=3)
    asyncio.run(spend_all(endpoint, 0.01, 1000, 4))
    each = (12 * PRICE.input + 3 * PRICE.output) / 1e6
    assert 0.9 * 0.01 / each <= endpoint.asked < 1000


def test_what_costs_nothing_is_not_held_back() -> None:
    async def ask() -> int:
        endpoint = Endpoint(1, 1)
        client = BudgetedClient(endpoint, Budget(0.0, 0.0), Price(input=0, output=0))
        await asyncio.gather(*(client.generate(PROMPT, draws=[n], sampling=Sampling()) for n in range(20)))
        return endpoint.most_at_first

    assert asyncio.run(ask()) == 20
