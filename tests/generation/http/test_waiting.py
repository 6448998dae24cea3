# SPDX-License-Identifier: Apache-2.0
"""Endpoints that are busy: every request is answered in the end, and the wait is bounded by time alone."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import orjson
import pytest

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.errors import ProviderError, RateLimitError
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.http.exchange import Reply
from reward_kit.http.retry import Patience, Timing, requests_held_up, with_retries
from reward_kit.models import Completion, Failure, Message

ANSWER = orjson.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]})
SLOW_DOWN = orjson.dumps({"error": {"message": "Rate limit reached"}})
QUESTION = [Message(role="user", content="Is it?")]


class Clock:
    """Time for many sleepers at once: it jumps to the next that wakes when nobody has anything to do."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), waking))
        await waking

    def timing(self) -> Timing:
        return Timing(clock=lambda: self.now, sleep=self.sleep, random=Random(3).random)

    async def run(self, work: Awaitable[Any]) -> Any:
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if self._sleepers and not task.done():
                until, _, waking = heapq.heappop(self._sleepers)
                self.now = max(self.now, until)
                if not waking.done():
                    waking.set_result(None)
        return task.result()


class Endpoint:
    """Answers after `seconds` what `admits` lets in, and turns the rest away."""

    def __init__(
        self, clock: Clock, admits: Callable[[Endpoint], bool], *, status: int = 429,
        headers: Mapping[str, str] | None = None, seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self.clock, self._admits, self._seconds = clock, admits, seconds
        self._refusal = Reply(status, headers or {}, SLOW_DOWN)
        self.let_in: list[float] = []
        self.asked: list[float] = []
        self.in_flight = 0

    async def post(self, data: bytes) -> Reply:
        self.asked.append(self.clock.now)
        if not self._admits(self):
            return self._refusal
        self.let_in.append(self.clock.now)
        self.in_flight += 1
        await self.clock.sleep(self._seconds)
        self.in_flight -= 1
        return Reply(200, {}, ANSWER)

    def check_reachable(self, attempts_per_call: int) -> None:
        pass

    async def close(self) -> None:
        pass

    def within(self, times: list[float], seconds: float) -> int:
        return sum(self.clock.now - time < seconds for time in times)


def per_minute(most: int) -> Callable[[Endpoint], bool]:
    return lambda end: sum(int(time // 60) == int(end.clock.now // 60) for time in end.let_in) < most


def in_any_minute(most: int) -> Callable[[Endpoint], bool]:
    return lambda end: end.within(end.let_in, 60) < most


def counting_what_it_refuses(most: int) -> Callable[[Endpoint], bool]:
    return lambda end: end.within(end.asked, 60) <= most


def at_a_time(most: int) -> Callable[[Endpoint], bool]:
    return lambda end: end.in_flight < most


async def ask_many(clock: Clock, endpoint: Endpoint, number: int, **params: Any) -> list[Completion | Failure]:
    client = OpenAICompatibleClient(
        "m", api_base="http://h/v1", carrier=endpoint, timing=clock.timing(), api_params=ApiParamsConfig(**params)
    )
    asked = (
        client.generate(QUESTION, draws=(0,), sampling=Sampling(), sample_id=str(number)) for number in range(number)
    )
    answered = await clock.run(asyncio.gather(*asked))
    assert client.in_flight == 0 and requests_held_up() == {}
    return [entry for entries in answered for entry in entries]


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["at once", "2 s"])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "1"}, {"Retry-After": "0"}], ids=["silent", "1", "0"])
@pytest.mark.parametrize(
    ("admits", "status"),
    [
        (per_minute(60), 429), (per_minute(40), 429), (in_any_minute(60), 429), (in_any_minute(40), 429),
        (counting_what_it_refuses(60), 429), (counting_what_it_refuses(40), 429), (at_a_time(4), 503),
        (at_a_time(1), 429),
    ],
    ids=["60", "40", "60 sliding", "40 sliding", "60 counted", "40 counted", "queue of 4", "one at a time"],
)  # fmt: skip
async def test_all_are_answered_in_the_end(
    admits: Callable[[Endpoint], bool], status: int, headers: dict[str, str], seconds: float
) -> None:
    if status == 503 and not headers:
        headers = {"Retry-After": "1"}  # without it, nobody says that it is busy
    clock = Clock()
    endpoint = Endpoint(clock, admits, status=status, headers=headers, seconds=seconds)
    entries = await ask_many(clock, endpoint, 100)
    assert sum(isinstance(entry, Completion) for entry in entries) == 100
    assert len(endpoint.let_in) == 100


async def test_a_whole_queue_is_not_sent_out_to_be_turned_away() -> None:
    clock = Clock()
    endpoint = Endpoint(clock, per_minute(60))
    await ask_many(clock, endpoint, 600)
    assert clock.now < 2 * 600
    assert len(endpoint.asked) < 3 * 600


async def test_the_wait_is_bounded_by_the_time_in_which_nobody_is_answered() -> None:
    clock = Clock()
    endpoint = Endpoint(clock, lambda end: end.clock.now < 1)
    entries = await ask_many(clock, endpoint, 30, max_wait=600, max_retries=0)
    assert all(isinstance(entry, Completion) for entry in entries)
    late = await ask_many(Clock(), Endpoint(clock, lambda _: False), 30, max_wait=600, max_retries=0)
    assert {entry.type for entry in late if isinstance(entry, Failure)} == {"RateLimitError"}
    assert all(isinstance(entry, Failure) and entry.retryable for entry in late)


async def test_one_bound_holds_for_all_calls_of_a_client() -> None:
    clock = Clock()
    endpoint = Endpoint(clock, lambda _: False)
    entries = await ask_many(clock, endpoint, 500, max_wait=600)
    assert all(isinstance(entry, Failure) for entry in entries)
    assert clock.now < 2 * 600, "the calls do not wait one after the other"


async def test_waiting_uses_up_no_retries() -> None:
    clock = Clock()
    errors: list[Exception] = [
        *(RateLimitError("slow down") for _ in range(20)), ProviderError("broken"),
        *(ProviderError("busy", retry_after=2.0, overloaded=True) for _ in range(20)), ProviderError("broken"),
    ]  # fmt: skip

    async def attempt() -> str:
        if errors:
            raise errors.pop(0)
        return "answered"

    assert await clock.run(with_retries(attempt, retries=2, timing=clock.timing())) == "answered"


async def test_an_overload_without_a_time_uses_up_retries() -> None:
    clock = Clock()
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise ProviderError("overloaded", overloaded=True)

    with pytest.raises(ProviderError):
        await clock.run(with_retries(attempt, retries=2, timing=clock.timing()))
    assert attempts == 3


async def test_no_patience_means_one_attempt() -> None:
    clock = Clock()
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise RateLimitError("slow down")

    with pytest.raises(RateLimitError):
        await with_retries(attempt, retries=5, timing=clock.timing(), patience=Patience(clock.timing(), 0.0))
    assert attempts == 1


async def test_those_who_wait_are_counted_for_the_progress_line() -> None:
    clock = Clock()
    seen: list[dict[str, int]] = []

    async def attempt() -> None:
        seen.append(requests_held_up())
        if len(seen) < 4:
            raise RateLimitError("slow down")

    await clock.run(with_retries(attempt, retries=0, timing=clock.timing()))
    held = {"api_params.rate_limit_qps": 1}
    assert (seen, requests_held_up()) == ([{}, held, held, held], {})
