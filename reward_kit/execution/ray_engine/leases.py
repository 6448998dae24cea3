# SPDX-License-Identifier: Apache-2.0
"""Limits that hold for all actors together, as an actor sees them. What they share is at the driver (`services.py`).

    requests in flight    an actor has a share of the ceiling, and tells now and then how many it could use; it asks
                          for more only when it needs more
    rates                 each request is charged at the driver, which says how long it has to wait
    money                 each request's allowance is set apart at the driver, before it is sent
    answers paid for      looked up at the driver; who is the first to miss one pays for it, and others wait for that

All of it travels in the packs that go to the driver anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from reward_kit.config_models import ApiParamsConfig, CacheConfig, Sampling
from reward_kit.errors import ProviderError, RateLimitError
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.responses import CachedClient, draw_key
from reward_kit.generation.commons import Limits
from reward_kit.http.limits import Pause
from reward_kit.http.retry import Patience, Timing
from reward_kit.models import Completion, Failure, Message

if TYPE_CHECKING:
    from reward_kit.execution.ray_engine.mailbox import Mailbox
    from reward_kit.generation.client import ModelClient

__all__ = ["LeasedBudget", "LeasedLimits", "Share", "SharedCommons", "Usage"]

_TELL_SECONDS = 0.1
"""How often an actor that sends requests says how many it has in flight, and hears what its share is by now."""


class Usage(NamedTuple):
    """What an actor tells of its requests to an endpoint, since it told the last time."""

    share: int
    """How many requests it takes for its own by now."""
    in_flight: int
    waiting: int
    answered: int
    complaints: list[tuple[int, float | None]]
    """Cuts that it knew of when it sent a request that the endpoint complained about; the pause that was asked for."""


class Share(NamedTuple):
    """What the driver answers."""

    share: int
    """How many requests the actor may have in flight."""
    cuts: int
    pause: float
    """Seconds in which no request is to be sent."""


class LeasedLimits:
    """The limits of one endpoint in one actor."""

    def __init__(self, mailbox: Mailbox, endpoint: str, params: ApiParamsConfig) -> None:
        """Ask the driver, over `mailbox`, for a part of what `params` allow."""
        self._mailbox, self._endpoint, self._params = mailbox, endpoint, params
        self.limit = 0
        self.in_flight = 0
        self._cuts = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pause = Pause(Timing(), params.max_retry_after)
        self.patience = Patience(Timing(), params.max_wait)
        self._answered = 0
        self._complaints: list[tuple[int, float | None]] = []
        self._telling: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._charged = params.rate_limit_qps is not None or params.rate_limit_tpm is not None

    @property
    def counts_tokens(self) -> bool:
        """Whether an estimate of tokens is of any use."""
        return self._params.rate_limit_tpm is not None

    async def enter(self, tokens: float) -> int:
        """Wait until one more request may be sent; pair with `leave`. Returns a mark to hand to `failed`."""
        await self._slot()
        try:
            if self._pause.was_asked:
                await self._pause.over()
            if self._charged:
                # Counted from when the answer is here: too late by the way it took, and never too early.
                await asyncio.sleep(await self._mailbox.ask("charge", self._endpoint, self._params, tokens))
                await self._pause.over()
        except BaseException:
            self.leave()
            raise
        return self._cuts

    def leave(self) -> None:
        """The request is over, however it ended."""
        self.in_flight -= 1
        self._hand_over()

    def answered(self, tokens: float, used: float | None) -> None:
        """The endpoint answered; `used` tokens, where it tells."""
        self._answered += 1
        if self._pause.was_asked:
            self._pause.answered()
            self.patience.answered()
        if self.counts_tokens and used is not None:
            self._mailbox.tell("correct", self._endpoint, self._params, tokens, used)

    def failed(self, error: RateLimitError | ProviderError, mark: int, tokens: float) -> None:
        """Tell of a complaint about load at once, and take back the charge."""
        if self.counts_tokens:
            self._mailbox.tell("correct", self._endpoint, self._params, tokens, 0.0)
        if isinstance(error, RateLimitError) or error.overloaded:
            self._complaints.append((mark, error.retry_after))
            self._pause.after(error, self.patience)
            self._news.set()
            self._tell_soon()

    async def _slot(self) -> None:
        if not self._waiting and self.in_flight < self.limit:
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._news.set()
        self._tell_soon()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the slot was handed over at the moment we were cancelled
            raise

    def _hand_over(self) -> None:
        while self._waiting and self.in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    # -- telling

    def _tell_soon(self) -> None:
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """Tell now and then, as long as there is anything to tell; the share is given back in the end."""
        while True:
            self._news.clear()
            complaints, self._complaints = self._complaints, []
            answered, self._answered = self._answered, 0
            waiting = sum(not turn.done() for turn in self._waiting)
            usage = Usage(self.limit, self.in_flight, waiting, answered, complaints)
            share: Share = await self._mailbox.ask("share", self._endpoint, self._params, usage)
            lowered = share.share < self.limit
            self.limit, self._cuts = share.share, share.cuts
            if share.pause > 0:
                self._pause.ask(share.pause)
            self._hand_over()
            if lowered:
                continue  # others wait for what is given up, and may have it once the driver knows
            if not (self.in_flight or self._waiting or self.limit):
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _TELL_SECONDS)


class LeasedBudget(Budget):
    """The run's budget, as an actor sees it: all of it is kept at the driver."""

    def __init__(self, mailbox: Mailbox, *, is_limited: bool) -> None:
        """Ask the driver over `mailbox`."""
        super().__init__(0.0 if is_limited else None, 0.0)
        self._mailbox = mailbox

    async def reserve(self, allowance: float) -> None:
        """Set money apart for a request, or refuse it."""
        await self._mailbox.ask("reserve", allowance)

    async def may_go_on(self) -> bool:
        """Whether a request that is on its way may be sent once more."""
        return bool(await self._mailbox.ask("may_go_on"))

    def release(self, allowance: float) -> None:
        """The request is done, or was never answered."""
        self._mailbox.tell("release", allowance)

    def lower(self, allowance: float, to: float) -> None:
        """A part of what was set apart is not needed any more."""
        self._mailbox.tell("lower", allowance, to)

    def spend(self, cost: float, *, at_most: bool = False) -> None:
        """Count money that was spent, or at most was."""
        if cost:
            self._mailbox.tell("spend", cost, at_most)


# ── answers that were paid for ───────────────────────────────────────────────────────────────────────────────────────


class _Answers:
    """Stands for a `ResponseCache` that is at the driver."""

    def __init__(self, mailbox: Mailbox, cache_dir: str) -> None:
        self._mailbox, self._cache_dir = mailbox, cache_dir
        self._found: dict[str, Completion] = {}
        self._mine: set[str] = set()

    async def look_up(self, keys: Sequence[str]) -> None:
        """Have `get` know what the driver knows of these keys. What nobody has is ours to ask the endpoint for."""
        found: dict[str, Completion] = await self._mailbox.ask("look_up", self._cache_dir, keys)
        self._found |= found
        self._mine.update(key for key in keys if key not in found)

    def get(self, key: str) -> Completion | None:
        return self._found.get(key)

    def put(self, key: str, completion: Completion, *, model: str = "") -> None:
        self._mine.discard(key)
        self._mailbox.tell("store", self._cache_dir, key, completion, model)

    def done_with(self, keys: Sequence[str]) -> None:
        """Forget what was found, and give up what was ours and did not come."""
        for key in keys:
            self._found.pop(key, None)
        if left := [key for key in keys if key in self._mine]:
            self._mine.difference_update(left)
            self._mailbox.tell("give_up", self._cache_dir, left)


class _AnsweredBefore(CachedClient):
    """A client behind the driver's cache."""

    def __init__(self, inner: ModelClient, answers: _Answers, settings: CacheConfig) -> None:
        super().__init__(inner, answers, settings)  # type: ignore[arg-type]  # has all that a cached client asks of its cache
        self._answers = answers

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One answer or failure per draw; only what the cache lacks is asked for."""
        await self.know_who_answers()
        request = self._keys_for(sampling).of(messages, tools, sample_id)
        keys = [draw_key(request, draw) for draw in draws]
        await self._answers.look_up(keys)
        try:
            return await super().generate(
                messages, draws=draws, sampling=sampling, tools=tools, sample_id=sample_id
            )  # fmt: skip
        finally:
            self._answers.done_with(keys)


class SharedCommons:
    """What the clients in an actor have in common with those in all others."""

    def __init__(self, mailbox: Mailbox) -> None:
        """Ask the driver over `mailbox`."""
        self._mailbox = mailbox
        self._limits: dict[str, LeasedLimits] = {}

    def limits(self, endpoint: str, params: ApiParamsConfig) -> Limits:
        """The limits of the clients that ask this endpoint with these parameters."""
        key = f"{endpoint} {params.model_dump_json()}"
        if key not in self._limits:
            self._limits[key] = LeasedLimits(self._mailbox, endpoint, params)
        return self._limits[key]

    @contextlib.contextmanager
    def cached(self, client: ModelClient, cache: CacheConfig) -> Iterator[ModelClient]:
        """The client behind the cache of that directory, at the driver."""
        yield _AnsweredBefore(client, _Answers(self._mailbox, cache.cache_dir), cache)
