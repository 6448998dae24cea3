# SPDX-License-Identifier: Apache-2.0
"""When a request is sent again, and after how long."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_kit.errors import ProviderError, RateLimitError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["LONGEST_ASKED_WAIT", "LONGEST_BACKOFF", "Timing", "retry_after", "with_retries"]

_log = logging.getLogger(__name__)

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


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    *,
    retries: int,
    timing: Timing,
    longest_asked: float = LONGEST_ASKED_WAIT,
) -> T:
    """What `attempt` returns; where its failure may pass, it is repeated up to `retries` times.

    The last failure is raised. Where the endpoint asks for a pause, no more than `longest_asked` seconds of it are
    waited.
    """
    for number in itertools.count():
        try:
            return await attempt()
        except (RateLimitError, ProviderError) as error:
            if number == retries:
                raise
            _log.debug("A request failed and is sent again: %s", error)
            wait = _backoff(error, number, timing, longest_asked)
        await timing.sleep(wait)
    raise AssertionError("counting does not end")


def _backoff(error: RateLimitError | ProviderError, number: int, timing: Timing, longest_asked: float) -> float:
    """Seconds to wait: exponential backoff with full jitter, or what the endpoint asked for and a little jitter."""
    ceiling: float = min(LONGEST_BACKOFF, timing.first_backoff * 2**number)
    if error.retry_after is None:
        return timing.random() * ceiling
    # The jitter keeps those who were told the same moment from coming back at the same moment.
    return min(error.retry_after, longest_asked) + timing.random() * min(ceiling, 1.0)
