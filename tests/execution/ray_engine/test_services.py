# SPDX-License-Identifier: Apache-2.0
"""One rate, one ceiling, one purse, one cache for all actors: whatever they do, and whoever of them dies."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from reward_kit.config_models import ApiParamsConfig, CacheConfig, Sampling
from reward_kit.errors import ProviderError, RateLimitError
from reward_kit.execution.ray_engine.leases import LeasedBudget, LeasedLimits, SharedCommons
from reward_kit.execution.ray_engine.mailbox import Mailbox
from reward_kit.execution.ray_engine.services import Services, _fair
from reward_kit.generation.budget import Budget, BudgetExhaustedError
from reward_kit.models import Completion, Failure, Message
from tests.execution.ray_engine.in_process import crew_of


class Endpoint:
    """Counts what is in flight at it, from all actors."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    async def request(self, seconds: float = 0.001) -> None:
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.now -= 1


def limits_by_mailbox(params: ApiParamsConfig) -> Any:
    made: dict[Mailbox, LeasedLimits] = {}

    def of(mailbox: Mailbox) -> LeasedLimits:
        if mailbox not in made:
            made[mailbox] = LeasedLimits(mailbox, "m at somewhere", params)
        return made[mailbox]

    return of


@pytest.mark.parametrize("seed", range(8))
async def test_requests_in_flight_never_exceed_the_ceiling_in_all_actors_together(seed: int) -> None:
    rng = random.Random(seed)
    ceiling, actors = rng.randrange(1, 12), rng.randrange(1, 5)
    endpoint, limits = Endpoint(), limits_by_mailbox(ApiParamsConfig(max_concurrent_requests=ceiling))

    async def work(thing: int, mailbox: Mailbox) -> int:
        await asyncio.sleep(rng.random() / 200)
        mine = limits(mailbox)
        await mine.enter(1.0)
        try:
            await endpoint.request(rng.random() / 200)
        finally:
            mine.leave()
        mine.answered(1.0, None)
        return thing

    async with crew_of(actors, work, Services(None), concurrency=rng.randrange(1, 9)) as (crew, _):
        await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(200)))
    assert endpoint.total == 200
    assert endpoint.most <= ceiling


async def test_a_complaint_to_one_actor_slows_all_of_them_and_they_recover() -> None:
    params = ApiParamsConfig(max_concurrent_requests=32)
    services, limits = Services(None), limits_by_mailbox(params)
    endpoint = Endpoint()
    complained = False

    async def work(thing: int, mailbox: Mailbox) -> int:
        nonlocal complained
        mine = limits(mailbox)
        mark = await mine.enter(1.0)
        await endpoint.request(0.002)
        if endpoint.total > 100 and not complained:
            complained = True
            mine.failed(RateLimitError("slow down"), mark, 1.0)
        else:
            mine.answered(1.0, None)
        mine.leave()
        return thing

    async with crew_of(2, work, services, concurrency=16) as (crew, _):
        await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(150)))
        (shared,) = services._endpoints.values()
        assert shared._cuts == 1
        assert shared._concurrency.limit < 32
        await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(2000)))
        assert shared._concurrency.limit > 24


async def test_a_pause_asked_of_one_actor_holds_for_all() -> None:
    services, limits = Services(None), limits_by_mailbox(ApiParamsConfig(max_concurrent_requests=4))
    hands: list[Mailbox] = []

    async def work(thing: str, mailbox: Mailbox) -> float:
        mine = limits(mailbox)
        if mailbox not in hands:
            hands.append(mailbox)
        mark = await mine.enter(1.0)
        mine.leave()
        if thing == "complain":
            mine.failed(ProviderError("busy", retry_after=0.4, overloaded=True), mark, 1.0)
        return asyncio.get_running_loop().time()

    async with crew_of(2, work, services) as (crew, _):
        await asyncio.gather(*(crew.do(lambda _: "work") for _ in range(8)))
        assert len(hands) == 2
        said = await crew.do(lambda _: "complain")
        await asyncio.sleep(0.15)  # both have told and heard meanwhile
        after = await asyncio.gather(*(crew.do(lambda _: "work") for _ in range(8)))
        assert min(after) - said >= 0.35


async def test_rates_are_of_all_actors_together() -> None:
    limits = limits_by_mailbox(ApiParamsConfig(max_concurrent_requests=50, rate_limit_qps=100))
    sent: list[float] = [asyncio.get_running_loop().time()]

    async def work(thing: int, mailbox: Mailbox) -> int:
        mine = limits(mailbox)
        await mine.enter(1.0)
        sent.append(asyncio.get_running_loop().time())
        mine.leave()
        return thing

    async with crew_of(3, work, Services(None), concurrency=20) as (crew, _):
        await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(60)))
    assert sent[-1] - sent[0] >= (60 - 100 * 0.1 - 1) / 100


@pytest.mark.parametrize("seed", range(6))
async def test_money_is_never_spent_twice_whoever_dies(seed: int) -> None:
    rng = random.Random(seed)
    paid = 0.0

    async def work(thing: int, mailbox: Mailbox) -> bool:
        nonlocal paid
        purse = LeasedBudget(mailbox, is_limited=True)
        try:
            await purse.reserve(1.0)
        except BudgetExhaustedError:
            return False
        paid += 0.9  # as soon as it is sent, whether or not anybody hears of it
        await asyncio.sleep(rng.random() / 100)
        purse.lower(1.0, 0.9)
        await asyncio.sleep(rng.random() / 100)
        purse.release(0.9)
        purse.spend(0.9)
        return True

    budget = Budget(40.0, 0.0)
    async with crew_of(3, work, Services(budget)) as (crew, made):

        async def harm() -> None:
            for _ in range(4):
                await asyncio.sleep(rng.random() / 50)
                rng.choice(made).kill()

        harming = asyncio.create_task(harm())
        outcomes = await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(100)))
        await harming
    assert not all(outcomes)
    assert paid <= 40.0
    assert budget.overspent == 0


def test_a_share_is_what_is_wanted_or_fair() -> None:
    assert _fair({1: 2, 2: 50, 3: 50}, 20) == {1: 2, 2: 9, 3: 9}
    assert _fair({1: 5}, 20) == {1: 5}
    assert sum(_fair({1: 9, 2: 9, 3: 9}, 4).values()) == 4


class Model:
    """Answers, and counts; dies of nothing."""

    model = "m"
    identity: dict[str, Any] = {"model": "m"}  # noqa: RUF012 - a constant of the test

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def generate(
        self, messages: Any, *, draws: Any, sampling: Any, tools: Any = None, sample_id: str = ""
    ) -> list[Completion | Failure]:
        await asyncio.sleep(0.005)
        self._asked += [f"{messages[0].text} {draw}" for draw in draws]
        return [Completion(message=Message(role="assistant", content=messages[0].text)) for _ in draws]

    async def close(self) -> None:
        """There is nothing to close."""


async def test_two_actors_do_not_pay_for_one_prompt_and_the_file_is_the_drivers(tmp_path: Path) -> None:
    asked: list[str] = []
    sampling = Sampling()

    async def work(thing: int, mailbox: Mailbox) -> list[bool]:
        with SharedCommons(mailbox).cached(Model(asked), CacheConfig(cache_dir=str(tmp_path))) as client:
            prompt = [Message(role="user", content=f"prompt {thing}")]
            answers = await client.generate(prompt, draws=[0, 1], sampling=sampling)
            return [answer.cached for answer in answers if isinstance(answer, Completion)]

    services = Services(None)
    async with crew_of(3, work, services) as (crew, _):
        first = await asyncio.gather(*(crew.do(lambda _, n=n: n % 5) for n in range(40)))  # type: ignore[misc]
    services.close()
    assert sorted(asked) == sorted(f"prompt {n} {draw}" for n in range(5) for draw in (0, 1))
    assert sum(not cached for answers in first for cached in answers) == 10
    later = Services(None)
    async with crew_of(1, work, later) as (crew, _):
        assert await crew.do(lambda _: 3) == [True, True]
    later.close()
    assert len(asked) == 10


async def test_a_prompt_whose_payer_dies_is_paid_by_whoever_waits(tmp_path: Path) -> None:
    asked: list[str] = []

    async def work(thing: int, mailbox: Mailbox) -> int:
        with SharedCommons(mailbox).cached(Model(asked), CacheConfig(cache_dir=str(tmp_path))) as client:
            await client.generate([Message(role="user", content="the same")], draws=[0], sampling=Sampling())
            return thing

    services = Services(None)
    async with crew_of(2, work, services, concurrency=1) as (crew, made):
        both = asyncio.gather(*(crew.do(lambda _, n=n: n) for n in range(2)))  # type: ignore[misc]
        while not services._claimed:
            await asyncio.sleep(0)
        payer = next(number for number, held in enumerate(services._holdings) if held.claims)
        made[payer].kill()
        assert await both == [0, 1]
    services.close()
    assert 1 <= len(asked) <= 2
