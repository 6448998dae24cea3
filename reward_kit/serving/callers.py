# SPDX-License-Identifier: Apache-2.0
"""Who calls, and how much each may have at a time.

A caller is known by an id: that of its API key, the e-mail address of its token, a name in its certificate. Ids go into
the access log; credentials go nowhere.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from reward_kit.serving.refusals import BUSY_SECONDS, Refusal

__all__ = ["ANYBODY", "Allowance", "Allowances", "Caller"]

_MOST_CALLERS = 10_000
"""Whose use is remembered at a time; the one that has not called for longest is forgotten first."""


class Caller(NamedTuple):
    """Who calls, with the limits that were set for them in particular."""

    id: str
    rate: float | None = None
    """Answers per second."""
    concurrency: int | None = None
    """Requests in flight."""


ANYBODY = Caller("-")
"""The caller where nobody is asked who they are."""


class Allowance:
    """What one caller has used: a bucket that fills by `rate` each second, and the requests in flight."""

    __slots__ = ("_clock", "_concurrency", "_filled", "_left", "_rate", "in_flight")

    def __init__(self, rate: float | None, concurrency: int | None, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._concurrency = concurrency
        self._clock = clock
        self._left = max(1.0, rate or 0.0)  # the bucket holds one second's worth
        self._filled = clock()
        self.in_flight = 0

    def limits(self) -> tuple[float | None, int | None]:
        """As they were set."""
        return self._rate, self._concurrency

    def enter(self) -> None:
        """Begin a request; a `Refusal` where too many are in flight. Call `leave` in the end."""
        if self._concurrency is not None and self.in_flight >= self._concurrency:
            raise Refusal.too_fast(BUSY_SECONDS)
        self.in_flight += 1

    def leave(self) -> None:
        """End a request."""
        self.in_flight -= 1

    def spend(self, answers: int) -> None:
        """Have so many answers judged; a `Refusal` that says how long to wait where that is too much.

        A batch larger than one second's worth is let through when the bucket is full, and paid for by waiting after it.
        """
        if self._rate is None:
            return
        now, most = self._clock(), max(1.0, self._rate)
        self._left = min(most, self._left + (now - self._filled) * self._rate)
        self._filled = now
        needed = min(float(answers), most)
        if self._left < needed:
            raise Refusal.too_fast((needed - self._left) / self._rate)
        self._left -= answers


class Allowances:
    """The allowance of each caller, by id."""

    def __init__(
        self, rate: float | None, concurrency: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the limits that hold for callers for whom none are set in particular."""
        self._rate = rate
        self._concurrency = concurrency
        self._clock = clock
        self._by_id: OrderedDict[str, Allowance] = OrderedDict()

    def of(self, caller: Caller) -> Allowance:
        """What the caller may do; kept as long as its limits stay the same."""
        limits = (caller.rate or self._rate, caller.concurrency or self._concurrency)
        found = self._by_id.get(caller.id)
        if found is None or found.limits() != limits:
            found = self._by_id[caller.id] = Allowance(*limits, self._clock)
            self._forget_some()
        self._by_id.move_to_end(caller.id)
        return found

    def _forget_some(self) -> None:
        while len(self._by_id) > _MOST_CALLERS:
            self._by_id.popitem(last=False)
