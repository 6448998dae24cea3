# SPDX-License-Identifier: Apache-2.0
"""What limits the load on an endpoint: requests in flight, requests per second, tokens per minute, pauses it asked for.

    slot in flight (adaptive) → pause over? → requests per second → tokens per minute → send

Everything is O(1) per request and makes no task; a limit that was not set costs a comparison.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from reward_kit.config_models import ApiParamsConfig
from reward_kit.errors import ProviderError, RateLimitError
from reward_kit.http.retry import LONGEST_ASKED_WAIT, Patience, Timing, is_busy

__all__ = ["AdaptiveLimit", "Pause", "Rate", "RequestLimits", "requests_per_second", "tokens_per_minute"]

_log = logging.getLogger(__name__)

_CUT = 0.7
_WINDOWS_TO_RECOVER = 16
_BURST_SECONDS = 0.1
_TOKEN_BURST_SECONDS = 6.0
_LONGEST_OF_OURS = 5.0
"""Seconds for which all requests are held back where the endpoint names no time, or too short a one."""
_WORTH_SAYING = 5.0
"""Seconds from which on a pause is announced, and by which one must be longer than the last to be announced anew."""


class AdaptiveLimit:
    """Requests in flight: cut when the endpoint complains of load, raised again, little by little, as it answers.

    All requests that were in flight at a cut were sent under the old limit: their complaints say nothing new. Only a
    complaint about a request sent after the cut cuts again.
    """

    def __init__(self, maximum: int) -> None:
        """Start at, and never exceed, `maximum`."""
        self.maximum = maximum
        self.in_flight = 0
        self._limit = float(maximum)
        self._cuts = 0
        self._step = max(1.0, maximum / _WINDOWS_TO_RECOVER)
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many may be in flight now."""
        return int(self._limit)

    async def acquire(self) -> int:
        """Wait for a slot, first come first served. Returns the number of cuts so far, to hand to `overloaded`."""
        if (cuts := self.acquire_at_once()) is not None:
            return cuts
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # the slot was handed over at the moment we were cancelled
            raise
        return self._cuts

    def acquire_at_once(self) -> int | None:
        """The same where there is a free slot and nobody waits for one; None where one would have to wait."""
        if self._waiting or self.in_flight >= self.limit:
            return None
        self.in_flight += 1
        return self._cuts

    def release(self) -> None:
        """A request has ended: let the next one that waits begin."""
        self.in_flight -= 1
        self._hand_over()

    def succeeded(self) -> None:
        """Note an answer: after a window of them the limit has risen by one step."""
        if self._limit < self.maximum:
            self._limit = min(float(self.maximum), self._limit + self._step / self._limit)
            self._hand_over()

    def overloaded(self, cuts_when_sent: int) -> None:
        """Note a complaint about load by a request sent after that many cuts."""
        if cuts_when_sent != self._cuts:
            return
        self._cuts += 1
        # From what is in use, not from a limit that nobody reached: such a cut would change nothing.
        self._limit = max(1.0, min(self._limit, float(self.in_flight)) * _CUT)
        _log.debug("The endpoint is overloaded: at most %d requests at a time from now on.", self.limit)

    def _hand_over(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


class Pause:
    """A gate that an endpoint's `Retry-After` closes for every new request of the client."""

    def __init__(self, timing: Timing, longest: float = LONGEST_ASKED_WAIT) -> None:
        """Start open. No pause is longer than `longest` seconds, whatever is asked for."""
        self._timing = timing
        self._longest = longest
        self._until = float("-inf")
        self._in_a_row = 0
        self.was_asked = False
        """Whether the endpoint has ever asked for one."""

    def ask(self, seconds: float) -> None:
        """Keep closed for `seconds` from now; a longer pause that was asked before stands."""
        self.was_asked = True
        until = self._timing.clock() + min(seconds, self._longest)
        if until > self._until + _WORTH_SAYING and min(seconds, self._longest) >= _WORTH_SAYING:
            more = f" (it asks for {seconds:,.0f} s)" if seconds > self._longest else ""
            _log.warning("Waiting %.0f s, as the endpoint asks%s.", min(seconds, self._longest), more)
        self._until = max(self._until, until)

    def after(self, error: RateLimitError | ProviderError, patience: Patience) -> None:
        """Close as a complaint about load asks; no more once the endpoint is not waited for any longer."""
        if is_busy(error):
            if patience.is_over():
                return
            self._back_off()
        if error.retry_after is not None:
            self.ask(error.retry_after)

    def _back_off(self) -> None:
        """Close because the endpoint is busy, longer each time in a row, whatever shorter time it names.

        Without this, each of the requests that wait would go out to be turned away, and many providers count those,
        too.
        """
        self.was_asked = True
        now = self._timing.clock()
        if now < self._until:
            return  # it was sent before the gate was closed
        wait = min(_LONGEST_OF_OURS, self._timing.first_backoff * 2 ** min(self._in_a_row, 9))
        self._in_a_row += 1
        self._until = now + wait * (0.5 + self._timing.random() / 2)

    def answered(self) -> None:
        """The endpoint has answered: the next time begins with a short pause."""
        self._in_a_row = 0

    async def over(self) -> None:
        """Wait until the gate is open."""
        while (remaining := self._until - self._timing.clock()) > 0:
            await self._timing.sleep(remaining)


class Rate:
    """So many requests, or tokens, per second, first come first served. Estimates are charged, and corrected later.

    Kept as one number, the moment at which everything charged so far is paid off. A request larger than all that may be
    charged at once goes through and is paid off afterwards, instead of never.
    """

    def __init__(self, per_second: float, burst_seconds: float, timing: Timing) -> None:
        """Start with nothing owed; what is paid off within `burst_seconds` may be charged at once."""
        self._seconds_each = 1.0 / per_second
        self._burst_seconds = burst_seconds
        self._timing = timing
        self._paid_off_at = float("-inf")

    async def charge(self, amount: float = 1.0) -> None:
        """Wait until what was charged before is nearly paid off, then owe `amount` more."""
        wait = self.owe(amount)
        if wait > 0:
            try:
                await self._timing.sleep(wait)
            except asyncio.CancelledError:
                self.correct(amount, 0)
                raise

    def owe(self, amount: float = 1.0) -> float:
        """Charge `amount`, and return for how many seconds whoever wants it has to wait; less than 0: not at all."""
        now = self._timing.clock()
        owed_from = max(now, self._paid_off_at)
        self._paid_off_at = owed_from + amount * self._seconds_each
        return owed_from - self._burst_seconds - now

    def correct(self, charged: float, used: float) -> None:
        """Replace an estimate by what the request really used."""
        self._paid_off_at += (used - charged) * self._seconds_each


def requests_per_second(rate: float, timing: Timing) -> Rate:
    """A rate of requests whose burst is a tenth of a second's worth (one request at least)."""
    return Rate(rate, max(0.0, _BURST_SECONDS - 1.0 / rate), timing)


def tokens_per_minute(rate: float, timing: Timing) -> Rate:
    """A rate of tokens whose burst is six seconds' worth."""
    return Rate(rate / 60.0, _TOKEN_BURST_SECONDS, timing)


class RequestLimits:
    """All limits of one client."""

    def __init__(self, params: ApiParamsConfig, timing: Timing) -> None:
        """Take the bounds from `params`."""
        self.patience = Patience(timing, params.max_wait)
        self.concurrency = AdaptiveLimit(params.max_concurrent_requests)
        self._pause = Pause(timing, params.max_retry_after)
        self._rate = requests_per_second(params.rate_limit_qps, timing) if params.rate_limit_qps else None
        self._tokens = tokens_per_minute(params.rate_limit_tpm, timing) if params.rate_limit_tpm else None

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return self.concurrency.limit

    @property
    def in_flight(self) -> int:
        """How many requests hold a slot now."""
        return self.concurrency.in_flight

    @property
    def counts_tokens(self) -> bool:
        """Whether an estimate of tokens is of any use."""
        return self._tokens is not None

    async def enter(self, tokens: float) -> int:
        """Wait until one more request may be sent; pair with `leave`. Returns a mark to hand to `failed`."""
        mark = self.concurrency.acquire_at_once()
        if mark is None:
            mark = await self.concurrency.acquire()
        try:
            if self._pause.was_asked:
                await self._pause.over()
            if self._rate is not None:
                await self._rate.charge()
            if self._tokens is not None:
                await self._tokens.charge(tokens)
            if self._rate is not None or self._tokens is not None:
                await self._pause.over()  # one may have been asked for while we waited
        except BaseException:
            self.concurrency.release()
            raise
        return mark

    def leave(self) -> None:
        """The request is over, however it ended."""
        self.concurrency.release()

    def answered(self, tokens: float, used: float | None) -> None:
        """The endpoint answered; `used` tokens, where it tells."""
        self.concurrency.succeeded()
        if self._pause.was_asked:
            self._pause.answered()
            self.patience.answered()
        if self._tokens is not None and used is not None:
            self._tokens.correct(tokens, used)

    def failed(self, error: RateLimitError | ProviderError, mark: int, tokens: float) -> None:
        """Slow down as far as `error` is about load, and take back the charge: a request that failed used nothing."""
        if self._tokens is not None:
            self._tokens.correct(tokens, 0)
        if isinstance(error, RateLimitError) or error.overloaded:
            self.concurrency.overloaded(mark)
            self._pause.after(error, self.patience)
