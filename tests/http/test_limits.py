# SPDX-License-Identifier: Apache-2.0
"""The limits, counted in a time that only passes when everyone waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.config_models import ApiParamsConfig
from reward_kit.errors import ProviderError, RateLimitError
from reward_kit.http.limits import (
    AdaptiveLimit,
    Pause,
    RequestLimits,
    requests_per_second,
    tokens_per_minute,
)
from reward_kit.http.retry import Timing
from tests.generation.loopback import FakeTime


class _SkippingSelector(selectors.DefaultSelector):
    """Never waits: what it was told to wait is added to the time that has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0)
        self.passed += 1e-6 if events else max(timeout or 0.0, 1e-6)  # a clock never stands still altogether
        return events


class _SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.passed


def run_skipping(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        runner.run(main)


def admitted_by(times: list[float], moment: float) -> int:
    return sum(time <= moment for time in times)


# ── requests per second ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("rate", "burst"), [(50.0, 5), (5.0, 1), (0.5, 1)])
def test_requests_keep_to_the_rate_from_the_first_second_on(rate: float, burst: int) -> None:
    times: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        limiter = requests_per_second(rate, Timing(clock=loop.time))

        async def request() -> None:
            await limiter.charge()
            times.append(loop.time())

        await asyncio.gather(*(request() for _ in range(int(rate * 4) + 2)))

    run_skipping(main())
    assert admitted_by(times, 0.001) == burst
    for second in range(1, int(max(times)) + 1):
        assert admitted_by(times, second) <= burst + rate * second + 1
    assert max(times) <= len(times) / rate + 1  # and no slower than it may


# ── tokens a minute ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_tokens_keep_to_the_budget_in_the_order_of_asking() -> None:
    time = FakeTime()
    budget = tokens_per_minute(600, time.timing())  # ten a second, sixty at once
    for _ in range(8):
        await budget.charge(30)
    assert sum(time.slept) == pytest.approx((7 * 30 - 60) / 10)


async def test_an_estimate_is_corrected_by_what_was_used() -> None:
    time = FakeTime()
    budget = tokens_per_minute(600, time.timing())
    for _ in range(50):
        await budget.charge(1000)
        budget.correct(1000, 1)
    assert time.slept == []


async def test_a_request_larger_than_the_budget_goes_through_and_is_paid_off() -> None:
    time = FakeTime()
    budget = tokens_per_minute(600, time.timing())
    await budget.charge(6000)
    assert time.slept == []
    await budget.charge(10)
    assert time.slept == [pytest.approx(594)]


async def test_who_gives_up_waiting_for_tokens_takes_the_charge_back() -> None:
    entered = asyncio.Event()

    async def stuck(_: float) -> None:
        entered.set()
        await asyncio.Event().wait()

    budget = tokens_per_minute(600, Timing(clock=lambda: 0.0, sleep=stuck))
    await budget.charge(100)
    waiting = asyncio.ensure_future(budget.charge(10_000))
    await entered.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    budget.correct(100, 0)
    await budget.charge(1)  # nothing is owed any more: this returns at once


# ── requests in flight ───────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 20), st.integers(1, 60), st.sets(st.integers(0, 59)))
def test_never_more_in_flight_than_the_limit_and_no_slot_is_lost(
    maximum: int, requests: int, cancelled: set[int]
) -> None:
    async def main() -> None:
        limit = AdaptiveLimit(maximum)
        most = 0

        async def request() -> None:
            nonlocal most
            await limit.acquire()
            try:
                most = max(most, limit.in_flight)
                await asyncio.sleep(0)
            finally:
                limit.release()

        tasks = [asyncio.ensure_future(request()) for _ in range(requests)]
        for step, number in enumerate(sorted(cancelled)):
            if number < requests:
                tasks[number].cancel()
            if step % 2:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= maximum
        assert limit.in_flight == 0
        await asyncio.wait_for(limit.acquire(), 60)

    asyncio.run(main())


@given(st.integers(1, 300), st.lists(st.booleans(), max_size=300))
def test_the_limit_stays_between_one_and_its_maximum(maximum: int, answers: list[bool]) -> None:
    async def main() -> None:
        limit = AdaptiveLimit(maximum)
        for answered in answers:
            cuts = await limit.acquire()
            if answered:
                limit.succeeded()
            else:
                limit.overloaded(cuts)
            assert 1 <= limit.limit <= maximum
            limit.release()

    asyncio.run(main())


async def test_the_complaints_of_one_burst_cut_once_and_later_ones_again() -> None:
    limit = AdaptiveLimit(100)
    burst = [await limit.acquire() for _ in range(100)]
    for cuts in burst:
        limit.overloaded(cuts)
    assert limit.limit == 70
    for _ in burst:
        limit.release()
    later = [await limit.acquire() for _ in range(70)]
    limit.overloaded(later[0])
    assert limit.limit == 49


async def test_a_cut_starts_from_what_is_in_use() -> None:
    limit = AdaptiveLimit(1000)
    for _ in range(10):
        cuts = await limit.acquire()
    limit.overloaded(cuts)
    assert limit.limit == 7


async def test_recovery_takes_a_bounded_number_of_windows() -> None:
    limit = AdaptiveLimit(256)
    for _ in range(30):
        cuts = await limit.acquire()
        limit.overloaded(cuts)
        limit.release()
    assert limit.limit == 1
    windows = 0
    while limit.limit < 256:
        for _ in range(limit.limit):
            limit.succeeded()
        windows += 1
    assert windows <= 20


async def test_a_recovered_limit_lets_those_who_wait_in() -> None:
    limit = AdaptiveLimit(4)
    limit.overloaded(await limit.acquire())
    assert limit.limit == 1
    waiting = [asyncio.ensure_future(limit.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    assert limit.in_flight == 1
    for _ in range(20):
        limit.succeeded()
    await asyncio.gather(*waiting)
    assert limit.in_flight == 4


# ── pauses, and all together ─────────────────────────────────────────────────────────────────────────────────────────


async def test_the_longer_pause_stands_and_none_is_longer_than_two_minutes() -> None:
    time = FakeTime()
    pause = Pause(time.timing())
    await pause.over()
    pause.ask(10)
    pause.ask(5)
    await pause.over()
    assert time.slept == [10]
    pause.ask(9999)
    await pause.over()
    assert time.slept == [10, 120]


async def test_only_complaints_of_load_slow_the_client_down() -> None:
    time = FakeTime()
    limits = RequestLimits(ApiParamsConfig(max_concurrent_requests=10), time.timing())
    mark = await limits.enter(0)
    limits.failed(ProviderError("broken", retry_after=50), mark, 0)
    assert limits.concurrency.limit == 10
    await limits.enter(0)
    assert time.slept == []
    limits.failed(RateLimitError("slow down", retry_after=50), mark, 0)
    assert limits.concurrency.limit == 1
    limits.leave()
    limits.leave()
    await limits.enter(0)
    assert time.slept == [50]


async def test_a_failed_request_is_not_charged_for_its_tokens() -> None:
    time = FakeTime()
    limits = RequestLimits(ApiParamsConfig(rate_limit_tpm=600), time.timing())
    for _ in range(20):
        mark = await limits.enter(1000)
        limits.failed(ProviderError("broken"), mark, 1000)
        limits.leave()
    assert time.slept == []


async def test_a_pause_is_capped_and_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    time = FakeTime()
    pause = Pause(time.timing(), longest=60)
    pause.ask(3600)
    pause.ask(3600)
    await pause.over()
    assert time.slept == [60]
    assert caplog.text.count("Waiting 60 s, as the endpoint asks (it asks for 3,600 s).") == 1
    pause.ask(1)
    await pause.over()
    assert "Waiting 1 s" not in caplog.text
