# SPDX-License-Identifier: Apache-2.0
"""When a request is sent again."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.errors import AuthError, ProviderError, RateLimitError
from reward_kit.http.retry import LONGEST_BACKOFF, retry_after, with_retries
from tests.generation.loopback import FakeTime


@given(st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms", "Date"]), st.text(max_size=40)))
def test_whatever_the_headers_hold_the_wait_is_none_or_finite(headers: dict[str, str]) -> None:
    wait = retry_after(headers)
    assert wait is None or 0 <= wait < float("inf")


@pytest.mark.parametrize(
    ("value", "wait"), [("3", 3.0), ("0.5", 0.5), ("-3", 0.0), ("nan", None), ("inf", None), ("soon", None), ("", None)]
)
def test_seconds(value: str, wait: float | None) -> None:
    assert retry_after({"Retry-After": value}) == wait


def test_a_date_is_measured_by_our_clock_where_the_endpoint_does_not_tell_its_own() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1000))
    wait = retry_after({"Retry-After": later})
    assert wait is not None
    assert 900 < wait <= 1000
    assert retry_after({"Retry-After": "Wed, 01 Jan 2020 00:00:00 GMT"}) == 0.0


async def test_the_last_failure_is_raised_after_the_last_retry() -> None:
    attempts = 0
    clock = FakeTime()

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise ProviderError(f"failure {attempts}")

    with pytest.raises(ProviderError, match="failure 12"):
        await with_retries(attempt, retries=11, timing=clock.timing())
    assert attempts == 12
    assert clock.slept[:3] == [0.5, 1.0, 2.0]
    assert max(clock.slept) == LONGEST_BACKOFF


async def test_what_will_not_pass_is_not_repeated() -> None:
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise RateLimitError("slow down") if attempts == 1 else AuthError("revoked")

    with pytest.raises(AuthError):
        await with_retries(attempt, retries=5, timing=FakeTime().timing())
    assert attempts == 2


async def test_what_the_endpoint_asks_for_is_waited_up_to_a_limit() -> None:
    waits: list[float | None] = [3.0, 1000.0, None]
    clock = FakeTime()

    async def attempt() -> str:
        if waits:
            raise RateLimitError("slow down", retry_after=waits.pop(0))
        return "answered"

    assert await with_retries(attempt, retries=3, timing=clock.timing(), longest_asked=100.0) == "answered"
    assert clock.slept == [3.5, 101.0, 2.0], "with jitter of at most a second, then the third backoff"


async def test_without_retries_a_failure_is_raised_at_once() -> None:
    async def attempt() -> None:
        raise ProviderError("down")

    clock = FakeTime()
    with pytest.raises(ProviderError):
        await with_retries(attempt, retries=0, timing=clock.timing())
    assert clock.slept == []
