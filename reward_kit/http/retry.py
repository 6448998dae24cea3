# SPDX-License-Identifier: Apache-2.0
"""When a request is sent again, and after how long.

5xx, a lost connection, a broken answer      up to `retries` times, with exponential backoff
429, or 503 with `Retry-After`               for as long as the endpoint answers somebody, and `Patience` beyond that
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reward_kit.errors import ProviderError, RateLimitError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "LONGEST_ASKED_WAIT",
    "LONGEST_BACKOFF",
    "Patience",
    "Timing",
    "is_busy",
    "requests_held_up",
    "retry_after",
    "with_retries",
]

_log = logging.getLogger(__name__)

LONGEST_ASKED_WAIT = 120.0
"""Seconds of a `Retry-After` that are heeded unless told otherwise; an endpoint that asks for more is asked again
after this."""

LONGEST_BACKOFF = 60.0
"""The ceiling, in seconds, of the exponential backoff."""

LONGEST_WAIT = 900.0
"""Seconds for which an endpoint that is busy, and answers nobody, is waited for unless told otherwise."""

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


class Patience:
    """How long a busy endpoint is waited for: one for all the calls that a client makes.

    It is not counted per call: where 60 requests per minute are allowed, the last of 10,000 waits for hours, and each
    minute 60 of the others are answered.
    """

    def __init__(self, timing: Timing, longest: float = LONGEST_WAIT) -> None:
        """Wait for as long as somebody is answered, and for `longest` seconds in which nobody is."""
        self._timing = timing
        self._longest = longest
        self._since: float | None = None

    def answered(self) -> None:
        """Somebody was answered."""
        self._since = None

    def is_over(self) -> bool:
        """Whether a call that was turned away is to be given up."""
        now = self._timing.clock()
        self._since = now if self._since is None else self._since
        return now - self._since >= self._longest


def is_busy(error: RateLimitError | ProviderError) -> bool:
    """Whether the endpoint says that it will have time for this request later, and has done nothing about it."""
    return isinstance(error, RateLimitError) or (error.overloaded and error.retry_after is not None)


_held_up: Counter[str] = Counter()


def requests_held_up() -> dict[str, int]:
    """How many requests of this process wait for an endpoint that turned them away because it is busy.

    They are told by the setting that keeps requests below what the endpoint allows.
    """
    return {setting: waiting for setting, waiting in _held_up.items() if waiting}


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    *,
    retries: int,
    timing: Timing,
    longest_asked: float = LONGEST_ASKED_WAIT,
    patience: Patience | None = None,
    slower: str = "api_params.rate_limit_qps",
) -> T:
    """What `attempt` returns. Where its failure may pass, it is repeated: up to `retries` times, or as `patience` says.

    The last failure is raised. Where the endpoint asks for a pause, no more than `longest_asked` seconds of it are
    waited at a time. `slower` is the setting that the progress line names while it waits.
    """
    patience = patience or Patience(timing)
    failed = turned_away = 0
    try:
        while True:
            try:
                answer = await attempt()
            except (RateLimitError, ProviderError) as error:
                busy = is_busy(error)
                if patience.is_over() if busy else failed == retries:
                    raise
                _log.debug("A request failed and is sent again: %s", error)
                wait = _backoff(error, turned_away if busy else failed, timing, longest_asked)
                _held_up[slower] += busy and not turned_away
                failed, turned_away = failed + (not busy), turned_away + busy
            else:
                patience.answered()
                return answer
            await timing.sleep(wait)
    finally:
        _held_up[slower] -= turned_away > 0


def _backoff(error: RateLimitError | ProviderError, number: int, timing: Timing, longest_asked: float) -> float:
    """Seconds to wait: exponential backoff with full jitter, or what the endpoint asked for and a little jitter."""
    ceiling: float = min(LONGEST_BACKOFF, timing.first_backoff * 2**number)
    if error.retry_after is None:
        return timing.random() * ceiling
    # The jitter keeps those who were told the same moment from coming back at the same moment.
    return min(error.retry_after, longest_asked) + timing.random() * min(ceiling, 1.0)
