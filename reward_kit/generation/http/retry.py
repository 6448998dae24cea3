"""When a request is sent again, and after how long.

The first attempt never comes here: only its failure does, so that a request that succeeds pays nothing for retrying.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_kit.errors import ProviderError, RateLimitError

if TYPE_CHECKING:
    from datetime import datetime

    from tenacity import RetryCallState

__all__ = ["LONGEST_ASKED_WAIT", "LONGEST_BACKOFF", "Timing", "retry_after", "send_again"]

LONGEST_ASKED_WAIT = 120.0
"""Seconds of a `Retry-After` that are heeded unless told otherwise; an endpoint that asks for more is asked again
after this."""

LONGEST_BACKOFF = 60.0
"""The ceiling, in seconds, of the exponential backoff."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time and chance come from; a test brings its own and waits for nothing."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    first_backoff: float = 0.5
    """Seconds: the longest wait before the first retry. It doubles with each one."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks us to wait (`retry-after-ms`, or `Retry-After` as seconds or as a date), if it does."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After")
    if (seconds := _number(value)) is not None:
        return seconds
    then = _date(value)
    if then is None:
        return None
    # The endpoint's own clock, where it tells it: ours may be minutes off.
    now = _date(headers.get("Date"))
    return max(0.0, then.timestamp() - (now.timestamp() if now else time.time()))


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(value: str | None) -> datetime | None:
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None


async def send_again(
    attempt: Callable[[], Awaitable[T]],
    failed: RateLimitError | ProviderError,
    *,
    retries: int,
    timing: Timing,
    longest_asked: float = LONGEST_ASKED_WAIT,
) -> T:
    """Repeat `attempt`, which just failed with `failed`, up to `retries` times; the last failure is raised.

    Where the endpoint asks for a pause, no more than `longest_asked` seconds of it are waited.
    """
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

    pending: list[RateLimitError | ProviderError] = [failed]

    async def attempt_after_the_first() -> T:
        if pending:
            raise pending.pop()
        return await attempt()

    retrying = AsyncRetrying(
        stop=stop_after_attempt(1 + retries),
        wait=_Backoff(timing, longest_asked),
        retry=retry_if_exception_type((RateLimitError, ProviderError)),
        sleep=timing.sleep,
        reraise=True,
    )
    return await retrying(attempt_after_the_first)


@dataclass(frozen=True, slots=True)
class _Backoff:
    """Exponential backoff with full jitter; what the endpoint asked for comes before it."""

    timing: Timing
    longest_asked: float

    def __call__(self, state: RetryCallState) -> float:
        ceiling: float = min(LONGEST_BACKOFF, self.timing.first_backoff * 2 ** (state.attempt_number - 1))
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, RateLimitError | ProviderError) else None
        if asked is not None:
            # The jitter keeps those who were told the same moment from coming back at the same moment.
            return min(asked, self.longest_asked) + self.timing.random() * min(ceiling, 1.0)
        return self.timing.random() * ceiling
