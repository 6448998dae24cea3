# SPDX-License-Identifier: Apache-2.0
"""The line to a reward's server: connections that stay open, questions that go together, and trying again.

    judge(body) ─▶ with others of this turn, in one request ─▶ retry ─▶ limits ─▶ session ─▶ server
                                                               ▲                     │
                                429, 5xx, a broken answer: as `Retry-After` says ◀───┤
                                nobody there: again and again, for `max_outage` s ◀──┘

A line lives on one event loop, the process's own in the background, so that runs, trainers and plain calls share it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from reward_kit.config_models import ApiParamsConfig, RemoteRewardConfig
from reward_kit.errors import (
    AuthError,
    EndpointError,
    ItemError,
    ProviderError,
    RateLimitError,
    RewardError,
    RewardKitError,
    RewardTimeoutError,
)
from reward_kit.generation.http.refusals import read_complaint
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.http.limits import RequestLimits
from reward_kit.http.retry import Timing, retry_after, with_retries
from reward_kit.models import EvaluateResult
from reward_kit.redaction import mask
from reward_kit.remote.protocol import (
    BATCH_SUFFIX,
    ROUTE,
    Description,
    Outcome,
    batch_body,
    outcome_of,
    outcomes_of,
    refused_by_reward,
    unusable_in,
)
from reward_kit.remote.sign_in import SignIn, sign_in_for, tls_for
from reward_kit.utils import exact_json
from reward_kit.utils.tasks import together

if TYPE_CHECKING:
    from reward_kit.http.exchange import HttpSession, Reply

__all__ = ["Line"]

_TOGETHER_SECONDS = 0.003
"""How long a question waits for others to go with it. They come from other threads, one by one."""
_LARGEST_BATCH = 4 << 20
"""Bytes of questions in one request."""
_FIRST_SECONDS = 3.0
"""How long somebody is looked for at an address where nobody has answered yet: it may be the wrong one."""
_LONGEST_PAUSE = 2.0
"""Seconds between two attempts to reach a server that is not there."""
_NO_BATCHES = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
_OF_SOME_ITEM = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class _Question(NamedTuple):
    body: bytes
    outcome: asyncio.Future[Outcome]


class _NobodyThereError(Exception):
    """No connection came about."""


class Line:
    """Asks one reward's server. Made and used on one event loop."""

    def __init__(
        self,
        url: str,
        settings: RemoteRewardConfig,
        *,
        stops_run: bool,
        inherited_key: bool = False,
        batches: bool = True,
        has_answered: bool = False,
        timing: Timing | None = None,
    ) -> None:
        """Nothing is opened yet. `stops_run`: a server that is gone for too long is no failure of one item.
        `batches`: the server may take several questions in one request. `has_answered`: somebody was there before.
        """
        self._url = url
        self._settings = settings
        self._stops_run = stops_run
        self._inherited_key = inherited_key
        self._timing = timing or Timing()
        self._shown = mask(url)
        self._who = f"the reward at {self._shown}"
        params = ApiParamsConfig(
            max_concurrent_requests=settings.max_concurrent_requests, max_retry_after=settings.max_retry_after,
            max_wait=settings.max_wait,
        )  # fmt: skip
        self._limits = RequestLimits(params, self._timing)
        self._session: HttpSession | None = None
        self._sign_in: SignIn | None = None
        self._nobody_since: float | None = None
        self._answered = has_answered
        self._takes_batches = batches and settings.batch_size > 1 and url.partition("?")[0].endswith(ROUTE)
        self._waiting: list[_Question] = []
        self._asking: set[asyncio.Task[None]] = set()

    async def describe(self) -> Description | None:
        """What the server says of the reward; None where it says nothing of the kind."""
        reply = await self._send("GET", self._url)
        if reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise self._refusal(reply)
        return Description.read(reply.data) if reply.status == HTTPStatus.OK else None

    async def judge(self, body: bytes) -> EvaluateResult:
        """The result of one question, which goes to the server with others of the same moment."""
        loop = asyncio.get_running_loop()
        question = _Question(body, loop.create_future())
        self._waiting.append(question)
        if not self._takes_batches or len(self._waiting) == self._settings.batch_size:
            self._ask_all()
        elif len(self._waiting) == 1:
            loop.call_later(_TOGETHER_SECONDS, self._ask_all)
        return _result(await question.outcome)

    async def judge_group(self, body: bytes, size: int) -> list[Outcome]:
        """What became of each answer of a sample."""
        reply = await self._answer(self._url, body)
        outcomes = outcomes_of(reply.data, size, self._who)
        if outcomes is None:
            raise RewardError(f"{self._who} did not answer with {size} results. Check that the address is a reward's.")
        return outcomes

    async def close(self) -> None:
        """Give up what is under way, and close the connections."""
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # ── questions into requests ──────────────────────────────────────────────────────────────────────────────────────

    def _ask_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        for some in self._parts(waiting):
            task = asyncio.get_running_loop().create_task(self._ask(some))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    def _parts(self, questions: Sequence[_Question]) -> list[list[_Question]]:
        """The questions as they go into requests."""
        most = self._settings.batch_size if self._takes_batches else 1
        parts: list[list[_Question]] = []
        size = 0
        for question in questions:
            size += len(question.body)
            if not parts or len(parts[-1]) >= most or size > _LARGEST_BATCH:
                parts.append([])
                size = len(question.body)
            parts[-1].append(question)
        return parts

    async def _ask(self, questions: Sequence[_Question]) -> None:
        """Have the questions answered, and hand each its outcome. This never raises."""
        try:
            outcomes = await self._outcomes([question.body for question in questions])
        except asyncio.CancelledError:
            for question in questions:
                question.outcome.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - whoever waits for an outcome is told, whatever it is
            for question in questions:
                if not question.outcome.done():
                    question.outcome.set_exception(error)
            return
        for question, outcome in zip(questions, outcomes, strict=True):
            if not question.outcome.done():  # nobody waits for it any more
                question.outcome.set_result(outcome)

    async def _outcomes(self, bodies: Sequence[bytes]) -> list[Outcome]:
        if len(bodies) == 1 or not self._takes_batches:
            return await together(self._outcome(body) for body in bodies)
        path, mark, query = self._url.partition("?")
        reply = await self._send("POST", path + BATCH_SUFFIX + mark + query, batch_body(bodies))
        if reply.status in _NO_BATCHES:
            self._takes_batches = False
            return await together(self._outcome(body) for body in bodies)
        if reply.status in _OF_SOME_ITEM:  # one of them is at fault, and the others are not to suffer for it
            return await together(self._outcome(body) for body in bodies)
        if reply.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            half = len(bodies) // 2
            return [*await self._outcomes(bodies[:half]), *await self._outcomes(bodies[half:])]
        if reply.status != HTTPStatus.OK:
            raise self._refusal(reply)
        outcomes = outcomes_of(reply.data, len(bodies), self._who)
        if outcomes is None:
            raise RewardError(f"{self._who} did not answer with {len(bodies)} results. Check what it is.")
        return outcomes

    async def _outcome(self, body: bytes) -> Outcome:
        try:
            reply = await self._answer(self._url, body)
        except ItemError as error:
            return error
        try:
            return outcome_of(exact_json.loads(reply.data), self._who)
        except exact_json.JSONDecodeError:
            return RewardError(f"{self._who} did not answer with JSON. Check that the address is a reward's.")

    async def _answer(self, url: str, body: bytes) -> Reply:
        """A reply of 200; anything else is raised."""
        reply = await self._send("POST", url, body)
        if reply.status != HTTPStatus.OK:
            raise self._refusal(reply)
        return reply

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _send(self, method: str, url: str, data: bytes = b"") -> Reply:
        """The reply to a request, which is sent again while its failure may pass."""
        settings = self._settings
        try:
            return await with_retries(
                partial(self._reached, method, url, data),
                retries=settings.max_retries,
                timing=self._timing,
                longest_asked=settings.max_retry_after,
                patience=self._limits.patience,
                slower="reward.remote.max_concurrent_requests",
            )
        except (RateLimitError, ProviderError) as error:
            raise RewardError(str(error), retryable=True) from None

    async def _reached(self, method: str, url: str, data: bytes) -> Reply:
        """One attempt that reaches the server: where nobody is there, it is made again until the outage is too long."""
        pause = 0.05
        while True:
            try:
                reply = await self._attempt(method, url, data)
            except _NobodyThereError as error:
                now = self._timing.clock()
                self._nobody_since = self._nobody_since or now
                if now - self._nobody_since >= self._longest_outage:
                    raise self._gone(str(error)) from None
                await self._timing.sleep(pause * (0.5 + self._timing.random() / 2))
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            self._nobody_since, self._answered = None, True
            return reply

    @property
    def _longest_outage(self) -> float:
        is_asked_for = "max_outage" in self._settings.model_fields_set
        return self._settings.max_outage if self._answered or is_asked_for else _FIRST_SECONDS

    def _gone(self, why: str) -> RewardKitError:
        said = f"Nobody answers at {self._shown!r}: {why}. Start the reward there, or correct the address."
        return EndpointError(said) if self._stops_run else RewardError(said, retryable=True)

    async def _attempt(self, method: str, url: str, data: bytes) -> Reply:
        mark = await self._limits.enter(0)
        try:
            reply = await self._exchange(method, url, data)
            if (error := self._passing(reply)) is not None:
                raise error
        except (RateLimitError, ProviderError) as error:
            self._limits.failed(error, mark, 0)
            self._nobody_since = None  # somebody spoke
            raise
        finally:
            self._limits.leave()
        self._limits.answered(0, None)
        return reply

    def _passing(self, reply: Reply) -> RateLimitError | ProviderError | None:
        """The error of a reply that may be another one next time; the reward's own failures are not of that kind."""
        status = reply.status
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return RateLimitError(self._complaint(reply, "Try again later"), retry_after=retry_after(reply.headers))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED:
            if status != HTTPStatus.SERVICE_UNAVAILABLE and (refused_by_reward(reply.data) or unusable_in(reply.data)):
                return None
            return ProviderError(
                self._complaint(reply, "Try again later"), retry_after=retry_after(reply.headers),
                overloaded=status == HTTPStatus.SERVICE_UNAVAILABLE,
            )  # fmt: skip
        if status in {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}:
            return ProviderError(self._complaint(reply, "Try again later"), retry_after=retry_after(reply.headers))
        return None

    def _refusal(self, reply: Reply) -> RewardKitError:
        """The error of a reply that will be the same next time."""
        status = reply.status
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return AuthError(self._complaint(reply, "Check `reward.remote`: `sign_in`, and `api_key_env` for a key"))
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            return AuthError(f"The proxy on the way to {self._complaint(reply, 'Give it a login in HTTPS_PROXY')}")
        if moved := moved_to(status, reply.headers):
            return EndpointError(f"The reward at {self._shown!r} answered {status}: {moved}.")
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.GONE}:
            path = self._url.partition("?")[0]
            ending = "" if path.endswith(ROUTE) else f": that of a reward ends in {ROUTE}"
            return EndpointError(self._complaint(reply, f"Check the address, and its path{ending}"))
        if why := unusable_in(reply.data):
            return EndpointError(f"The reward at {self._shown!r} cannot work: {why}")
        return refused_by_reward(reply.data) or RewardError(
            self._complaint(reply, "Check the address and what is sent")
        )

    def _complaint(self, reply: Reply, what_to_do: str) -> str:
        words = read_complaint(reply.data).words
        return f"The reward at {self._shown!r} answered {reply.status}: {words}. {what_to_do}."

    async def _exchange(self, method: str, url: str, data: bytes) -> Reply:
        """The reply of the server, whatever it means; a way to it that fails is an error."""
        from yarl import URL

        session, headers = self._open(), await self._headers(method, url, data)
        try:
            return await session.request(
                method, URL(url, encoded=True), data or None, headers, seconds=self._settings.timeout
            )
        except HttpFault as fault:
            raise self._failed(fault) from None

    def _failed(self, fault: HttpFault) -> Exception:
        if fault.kind == "unreached":
            return _NobodyThereError(str(fault))
        if fault.kind == "untrusted":
            return EndpointError(
                f"The connection to {self._shown!r} cannot be trusted: {fault}. Check `reward.remote.ca_file`."
            )
        if fault.kind == "late":
            return RewardTimeoutError(
                f"The reward at {self._shown!r} did not answer within {self._settings.timeout:g} s. Raise "
                "`reward.remote.timeout` (request_timeout), or look at the service.", retryable=True
            )  # fmt: skip
        if fault.kind == "too_large":
            return RewardError(f"Of the reward at {self._shown!r}: {fault}. Raise `reward.remote.max_reply_mb`.")
        if _is_about_certificates(fault):
            return AuthError(
                f"{self._shown!r} ended the connection over certificates: {fault}. It may want a client "
                "certificate: set `reward.remote.client_cert_file`."
            )
        return ProviderError(f"The reward at {self._shown!r} broke off its answer: {fault}. {self._why_broken()}")

    def _why_broken(self) -> str:
        if self._url.startswith("https:") and self._settings.client_cert_file is None and not self._answered:
            return "It may want a client certificate: set `reward.remote.client_cert_file`."
        return "Try again."

    async def _headers(self, method: str, url: str, data: bytes) -> Mapping[str, str]:
        if self._sign_in is None:
            self._sign_in = sign_in_for(self._url, self._settings, inherited_key=self._inherited_key)
        return await self._sign_in.headers(method, url, data)

    def _open(self) -> HttpSession:
        if self._session is None:
            from reward_kit.http.exchange import HttpSession

            self._session = HttpSession(
                headers={"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "reward-kit"},
                max_reply=int(self._settings.max_reply_mb * (1 << 20)),
                ssl=tls_for(self._settings),
            )
        return self._session


def _result(outcome: Outcome) -> EvaluateResult:
    if isinstance(outcome, ItemError):
        raise outcome
    return outcome


def _is_about_certificates(error: BaseException | None) -> bool:
    """Whether the server refused our certificate, or the lack of one: TLS 1.3 says so only after the handshake."""
    import ssl

    seen: list[Any] = []
    while error is not None and error not in seen:
        if isinstance(error, ssl.SSLError):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False
