# SPDX-License-Identifier: Apache-2.0
"""What actors ask the driver for: answers that were paid for, turns written down, money, rates, requests in flight.

The driver keeps all of it, and not an actor of its own: it is where money is counted and files are written, and what a
node takes with it when it dies must not be the count of what was spent. Whatever an actor holds is noted with it, and
given back when it is lost.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_kit.agent.watch import EpisodeWatch
from reward_kit.config_models import ApiParamsConfig
from reward_kit.execution.ray_engine.leases import Share, Usage
from reward_kit.generation.budget import Budget
from reward_kit.generation.cache.responses import Earlier, ResponseCache
from reward_kit.generation.judge import JudgeUse
from reward_kit.http.limits import AdaptiveLimit, Rate, requests_per_second, tokens_per_minute
from reward_kit.http.retry import Timing
from reward_kit.models import Completion
from reward_kit.scoring.rewards import Rewards
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["Holdings", "Services"]

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Holdings:
    """What one actor holds of what all share."""

    is_gone: bool = False
    """Whether the actor is: what it asked for meanwhile is not to be given to it any more."""

    claims: set[tuple[str, str]] = field(default_factory=set)
    """Answers that it pays for, and that others may wait for."""
    reserved: list[float] = field(default_factory=list)
    """Money set apart for its requests."""
    watch: EpisodeWatch = field(default_factory=EpisodeWatch)
    judge: JudgeUse | None = None


class Services:
    """What the driver does for its actors."""

    def __init__(self, budget: Budget | None, turns: TurnJournal | None = None) -> None:
        """Keep the run's `budget`, and its file of `turns` where it has an agent."""
        self.turns = turns
        self.rewards: Rewards | None = None
        """The run's, once something is to be judged."""
        self.watch = EpisodeWatch()
        self.judge = JudgeUse()
        self.dropped_parameters: dict[str, str] = {}
        self.draws_at_once = 1 << 30
        self._judge_before: list[JudgeUse] = []
        self._watched_before: list[EpisodeWatch] = []
        self._holdings: list[Holdings] = []
        self._budget = budget
        self._caches: dict[str, ResponseCache] = {}
        self._claimed: dict[tuple[str, str], deque[asyncio.Future[None]]] = {}
        self._endpoints: dict[str, _Endpoint] = {}

    def close(self) -> None:
        """Write what is left, and close the files of the caches."""
        while self._caches:
            self._caches.popitem()[1].close()

    def holdings(self) -> Holdings:
        """For an actor that comes."""
        made = Holdings()
        self._holdings.append(made)
        return made

    def lost(self, held: Holdings) -> None:
        """An actor is gone. What was set apart for its requests may have been paid: it counts as spent."""
        held.is_gone = True
        self._holdings.remove(held)
        for claim in list(held.claims):
            self._let_go(held, claim)
        for endpoint in self._endpoints.values():
            endpoint.lost(id(held))
        if self._budget is not None:
            for allowance in held.reserved:
                self._budget.release(allowance)
                self._budget.spend(allowance, at_most=True)
        if held.judge is not None:
            self._judge_before.append(held.judge)
        self._watched_before.append(held.watch)
        self._sum_up()

    def ended(self, held: Holdings) -> None:
        """An actor has ended in good order."""
        held.reserved.clear()
        self.lost(held)

    # ── what is asked, and what is told ──────────────────────────────────────────────────────────────────────────────

    def answerer_of(self, service: str) -> Callable[..., Awaitable[Any]]:
        """What answers a question."""
        return _ASKED[service].__get__(self)  # type: ignore[no-any-return]

    def taker_of(self, service: str) -> Callable[..., None]:
        """What takes a message."""
        return _TOLD[service].__get__(self)  # type: ignore[no-any-return]

    async def look_up(self, held: Holdings, cache_dir: str, keys: Sequence[str]) -> dict[str, Completion]:
        """What the cache has of these keys; the rest is the asker's to pay for, once nobody else does."""
        cache = self._cache(cache_dir)
        found: dict[str, Completion] = {}
        for key in keys:
            claim = (cache_dir, key)
            while (hit := cache.get(key)) is None and claim in self._claimed:
                turn = asyncio.get_running_loop().create_future()
                self._claimed[claim].append(turn)
                await turn
            if hit is not None:
                found[key] = hit
            elif not held.is_gone:
                self._claimed[claim] = deque()
                held.claims.add(claim)
        return found

    def store(self, held: Holdings, cache_dir: str, key: str, completion: Completion, model: str) -> None:
        """Keep an answer that was paid for."""
        self._cache(cache_dir).put(key, completion, model=model)
        self._let_go(held, (cache_dir, key))

    def give_up(self, held: Holdings, cache_dir: str, keys: Sequence[str]) -> None:
        """Answers that the actor was to pay for did not come."""
        for key in keys:
            self._let_go(held, (cache_dir, key))

    async def keep_turns(self, held: Holdings, lines: Sequence[bytes]) -> None:
        """Write turns of episodes; they are on disk when this is answered."""
        del held
        if self.turns is None:
            raise AssertionError("there is no agent")
        for line in lines:
            self.turns.put(line)
        await self.turns.on_disk()

    async def reserve(self, held: Holdings, allowance: float) -> None:
        """Set money apart for a request, or refuse it."""
        if self._budget is not None:
            await self._budget.reserve(allowance)
            if held.is_gone:
                self._budget.release(allowance)
            else:
                held.reserved.append(allowance)

    async def may_go_on(self, held: Holdings) -> bool:
        """Whether a request that is on its way may be sent once more."""
        del held
        return self._budget is None or await self._budget.may_go_on()

    def release(self, held: Holdings, allowance: float) -> None:
        """A request is done, or was never answered."""
        if self._budget is not None:
            held.reserved.remove(allowance)
            self._budget.release(allowance)

    def lower(self, held: Holdings, allowance: float, to: float) -> None:
        """A part of what was set apart is not needed any more."""
        if self._budget is not None:
            held.reserved.remove(allowance)
            held.reserved.append(to)
            self._budget.lower(allowance, to)

    def spend(self, held: Holdings, cost: float, at_most: bool) -> None:
        """Count money that was spent, or at most was."""
        del held
        if self._budget is not None:
            self._budget.spend(cost, at_most=at_most)

    async def charge(self, held: Holdings, endpoint: str, params: ApiParamsConfig, tokens: float) -> float:
        """Charge one request; for how many seconds it has to wait."""
        del held
        return self._endpoint(endpoint, params).charge(tokens)

    def correct(self, held: Holdings, endpoint: str, params: ApiParamsConfig, tokens: float, used: float) -> None:
        """Replace an estimate of tokens by what was really used."""
        del held
        self._endpoint(endpoint, params).correct(tokens, used)

    async def share(self, held: Holdings, endpoint: str, params: ApiParamsConfig, usage: Usage) -> Share:
        """How many requests an actor may have in flight."""
        return self._endpoint(endpoint, params).share(id(held), usage)

    def figures(self, held: Holdings, watch: EpisodeWatch | None, judge: JudgeUse | None) -> None:
        """What goes on in the actor's episodes, and what its judge was asked, since it came."""
        if watch is not None:
            held.watch = watch
        held.judge = judge
        self._sum_up()

    def learned(self, held: Holdings, draws_at_once: int, dropped: dict[str, str]) -> None:
        """What the endpoint does not take."""
        del held
        self.draws_at_once = min(self.draws_at_once, draws_at_once)
        self.dropped_parameters |= dropped

    def log(self, held: Holdings, level: int, text: str) -> None:
        """A warning of an actor."""
        del held
        _log.log(level, "%s", text)

    def earlier(self) -> Earlier | None:
        """Of the answers that came from the caches, those that were not made since the run was entered."""
        found = [cache.earlier for cache in self._caches.values() if cache.earlier is not None]
        if not found:
            return None
        return Earlier(sum(one.answers for one in found), min(o.oldest for o in found), max(o.newest for o in found))

    def opened(self, held: Holdings, files: Sequence[tuple[str, dict[str, str | None]]]) -> None:
        """Files that rewards opened in an actor, by the split that they are for."""
        del held
        for split, told in files:
            if self.rewards is not None:
                self.rewards.named[split].opened.pass_on(told)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _cache(self, cache_dir: str) -> ResponseCache:
        if cache_dir not in self._caches:
            self._caches[cache_dir] = ResponseCache(cache_dir)
        return self._caches[cache_dir]

    def _let_go(self, held: Holdings, claim: tuple[str, str]) -> None:
        """Nobody pays for this answer any more: it is there, or the next who waits for it does."""
        held.claims.discard(claim)
        for turn in self._claimed.pop(claim, ()):
            if not turn.done():
                turn.set_result(None)

    def _endpoint(self, name: str, params: ApiParamsConfig) -> _Endpoint:
        key = f"{name} {params.model_dump_json()}"
        if key not in self._endpoints:
            self._endpoints[key] = _Endpoint(params)
        return self._endpoints[key]

    def _sum_up(self) -> None:
        watches = [held.watch for held in self._holdings]
        self.watch.in_flight = sum(watch.in_flight for watch in watches)
        for name in ("turns", "tool_calls", "tool_errors"):
            setattr(self.watch, name, sum(getattr(watch, name) for watch in (*self._watched_before, *watches)))
        uses = [*self._judge_before, *(held.judge for held in self._holdings if held.judge is not None)]
        for name in ("replies", "cached", "prompt_tokens", "completion_tokens"):
            setattr(self.judge, name, sum(getattr(use, name) for use in uses))
        costs = [use.cost for use in uses]
        self.judge.dropped_parameters = {name: why for use in uses for name, why in use.dropped_parameters.items()}
        self.judge.cost_is_at_most = any(use.cost_is_at_most for use in uses)
        self.judge.cost = None if None in costs else sum(cost for cost in costs if cost is not None)


class _Endpoint:
    """The limits of one endpoint, for all actors."""

    def __init__(self, params: ApiParamsConfig) -> None:
        timing = Timing()
        self._concurrency = AdaptiveLimit(params.max_concurrent_requests)
        self._requests: Rate | None = None
        self._tokens: Rate | None = None
        if params.rate_limit_qps:
            self._requests = requests_per_second(params.rate_limit_qps, timing)
        if params.rate_limit_tpm:
            self._tokens = tokens_per_minute(params.rate_limit_tpm, timing)
        self._longest_pause = params.max_retry_after
        self._paused_until = 0.0
        self._held: defaultdict[int, int] = defaultdict(int)
        """Requests that an actor may have in flight, as far as it knows: what it gives up is free once it says so."""
        self._wanted: dict[int, int] = {}
        self._in_flight: dict[int, int] = {}
        self._cuts = 0

    def lost(self, actor: int) -> None:
        for table in (self._held, self._wanted, self._in_flight):
            table.pop(actor, None)

    def charge(self, tokens: float) -> float:
        waits = [0.0]
        if self._requests is not None:
            waits.append(self._requests.owe())
        if self._tokens is not None:
            waits.append(self._tokens.owe(tokens))
        return max(waits)

    def correct(self, tokens: float, used: float) -> None:
        if self._tokens is not None:
            self._tokens.correct(tokens, used)

    def share(self, actor: int, usage: Usage) -> Share:
        self._in_flight[actor] = usage.in_flight
        self._wanted[actor] = usage.in_flight + usage.waiting
        self._held[actor] = max(usage.share, usage.in_flight)
        self._note(usage)
        limit = self._concurrency.limit
        free = limit - sum(held for other, held in self._held.items() if other != actor)
        share = max(0, min(_fair(self._wanted, limit)[actor], free))
        self._held[actor] = max(self._held[actor], share)  # what is given up counts until the actor says that it knows
        return Share(share, self._cuts, max(0.0, self._paused_until - time.monotonic()))

    def _note(self, usage: Usage) -> None:
        for _ in range(usage.answered):
            self._concurrency.succeeded()
        for mark, pause in usage.complaints:
            if mark == self._cuts:
                self._concurrency.in_flight = sum(self._in_flight.values())
                self._concurrency.overloaded(mark)
                self._cuts += 1
            if pause is not None:
                until = time.monotonic() + min(pause, self._longest_pause)
                self._paused_until = max(self._paused_until, until)


def _fair(wanted: dict[int, int], limit: int) -> dict[int, int]:
    """What each gets of `limit`: all that it wants, as far as nobody who wants more gets less."""
    given: dict[int, int] = {}
    left = limit
    for place, (actor, wants) in enumerate(sorted(wanted.items(), key=lambda pair: pair[1])):
        given[actor] = min(wants, -(-left // (len(wanted) - place)))
        left -= given[actor]
    return given


_ASKED: dict[str, Any] = {
    name: getattr(Services, name) for name in ("look_up", "keep_turns", "reserve", "may_go_on", "charge", "share")
}
_TOLD: dict[str, Any] = {
    name: getattr(Services, name)
    for name in ("store", "give_up", "release", "lower", "spend", "correct", "figures", "learned", "log", "opened")
}
