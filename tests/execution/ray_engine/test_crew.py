# SPDX-License-Identifier: Apache-2.0
"""Things given to actors that die at random: each is done, and told once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from reward_kit.execution.ray_engine.crew import LostError
from reward_kit.execution.ray_engine.mailbox import Mailbox
from reward_kit.execution.ray_engine.services import Services
from tests.execution.ray_engine.in_process import crew_of


@pytest.mark.parametrize("seed", range(20))
async def test_all_things_are_done_however_many_actors_die(seed: int) -> None:
    rng = random.Random(seed)
    done: list[int] = []

    async def work(thing: int, _: Mailbox) -> int:
        await asyncio.sleep(rng.random() / 500)
        done.append(thing)
        return thing * 2

    async with crew_of(rng.randrange(1, 4), work, Services(None)) as (crew, made):

        async def harm() -> None:
            for _ in range(rng.randrange(1, 4)):
                await asyncio.sleep(rng.random() / 100)
                rng.choice(made).kill()

        harming = asyncio.create_task(harm())
        outcomes = await asyncio.gather(*(crew.do(lambda _, n=n: n) for n in range(300)))  # type: ignore[misc]
        await harming
        assert outcomes == [2 * n for n in range(300)]
        assert set(done) == set(range(300))
        assert crew.most_under_way <= 3 * 8
        again = len(done) - 300
        assert again <= crew.lost * 8, "only what was under way is done again"


async def test_what_is_under_way_is_bounded_by_the_windows() -> None:
    at_once = most = 0

    async def work(thing: int, _: Mailbox) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return thing

    async with crew_of(2, work, Services(None), concurrency=5) as (crew, made):
        await asyncio.gather(*(crew.do(lambda _: 1) for _ in range(1000)))
        assert most <= crew.most_under_way <= crew.window == 20
        shares = [hand.received for hand in made]
        assert min(shares) > 250, "both have about half"


async def test_a_thing_that_kills_every_actor_fails_and_names_the_last() -> None:
    async def work(thing: str, _: Mailbox) -> Any:
        if thing == "poison":
            victims[-1].kill()
        return thing

    async with crew_of(1, work, Services(None)) as (crew, victims):
        with pytest.raises(LostError, match=r"5 actors were lost .* actor 'hand-0' .process 42. on node somewhere"):
            await crew.do(lambda _: "poison")
        assert await crew.do(lambda _: "bread") == "bread"
        assert len(victims) == 6


async def test_an_actor_that_never_starts_ends_the_run_with_a_reason() -> None:
    from reward_kit.errors import ClusterError
    from reward_kit.execution.ray_engine.crew import Actor, Crew
    from tests.execution.ray_engine.in_process import Gone

    async def never() -> Any:
        raise Gone("out of memory")

    def make(number: int) -> Actor:
        return Actor("generate-0", open=never, add=print, take=never, close=never, kill=lambda: None)

    crew = Crew("generate", 1, make, Services(None), (Gone,))
    with pytest.raises(ClusterError, match="'generate-0' was lost 5 times before it was ready: out of memory"):
        await crew.start()
    with pytest.raises(ClusterError):
        await crew.do(lambda _: 1)
    await crew.close()
