# SPDX-License-Identifier: Apache-2.0
"""One endpoint over HTTP: kept-alive connections, a deadline per request, and typed errors for lost connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

from reward_kit.errors import AuthError, ConfigError, EndpointError, ProviderError, RewardKitError
from reward_kit.http.faults import HttpFault
from reward_kit.http.proxies import proxy_for
from reward_kit.redaction import is_secret_name, looks_secret, mask, remember, remember_settings, secret_values, sent
from reward_kit.utils.deadlines import Deadlines

if TYPE_CHECKING:
    from reward_kit.http.exchange import Exchange, Reply

__all__ = ["CHAT_ROUTE", "KeyHeader", "Transport", "note_sent"]

_log = logging.getLogger(__name__)

_MOST_TOLD = 4 << 20
"""Bytes of a reply that is no answer."""
_CALLS_BEFORE_FIRST_ANSWER = 20
_CALLS_AFTER_AN_ANSWER = 200
CHAT_ROUTE = "/chat/completions"
KeyHeader = Literal["Authorization", "x-api-key", "x-goog-api-key"]
"""The header that an endpoint wants the key in: as a bearer's, or as it is."""
_NO_ADDRESS = "api_base {!r} is not an address. Give one such as 'http://localhost:8000/v1'."


class Transport:
    """Posts bodies to one address. Connects in the loop that first uses it; after `close`, in the next one."""

    def __init__(
        self,
        api_base: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        timeout: float,
        max_reply_mb: float = 64.0,
        route: str = CHAT_ROUTE,
        key_header: KeyHeader = "Authorization",
    ) -> None:
        """Check the address and the key; nothing is opened yet."""
        self._max_reply = int(max_reply_mb * (1 << 20))
        self.api_base = api_base
        self.url = _url(api_base, route)
        self._shown = mask(api_base)
        self._timeout = timeout
        self._deadlines = Deadlines(timeout)  # a fraction of what aiohttp's own timer for each request costs
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **_checked(headers)}
        if api_key is not None:
            remember(api_key)
            sent = _sendable(api_key)
            self._headers[key_header] = f"Bearer {sent}" if key_header == "Authorization" else sent
        self._exchange: Exchange | None = None
        self._given_up: list[Exchange] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered = False
        self._refused_in_a_row = 0

    def __repr__(self) -> str:
        return f"Transport({mask(self.url)!r})"

    async def post(self, data: bytes) -> Reply:
        """Send one body; a connection that fails or an answer that does not come in time is a `ProviderError`."""
        exchange = self._open()
        task = asyncio.current_task()
        if task is None:
            raise AssertionError("requests are made in a task")
        self._deadlines.begin(task)
        try:
            reply = await exchange.post(data)
        except exchange.faults as error:
            if self._falls_back(error):
                return await self.post(data)
            raise self._typed(error) from None
        except asyncio.CancelledError:
            if self._deadlines.was_missed_by(task):
                raise self._typed(TimeoutError()) from None
            raise
        finally:
            self._deadlines.end(task)
        self._answered = True
        self._refused_in_a_row = 0
        return reply

    async def get(self, route: str, seconds: float) -> Reply:
        """What the endpoint answers at another route, on a connection of its own."""
        from reward_kit.http.exchange import HttpSession

        url = _url(self.api_base, route)
        note_sent(self._headers, url)
        session = HttpSession(headers=self._headers, max_reply=_MOST_TOLD)
        try:
            return await session.request("GET", url, seconds=seconds)
        except HttpFault as fault:
            raise ProviderError(f"{self._shown} did not answer at {route}: {fault}.") from None
        finally:
            await session.close()

    def _typed(self, error: Exception) -> RewardKitError:
        import aiohttp

        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return EndpointError(
                f"The certificate of {self._shown} is not trusted: {error}. Correct the certificate, or api_base."
            )
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            self._refused_in_a_row += 1
            unreached = ProviderError(f"{self._shown} cannot be reached: {_reason(error)}. Check that it runs.")
            unreached.unsent = True
            return unreached
        if isinstance(error, TimeoutError):
            return ProviderError(
                f"{self._shown} gave no whole answer within {self._timeout:g} s. Raise api_params.timeout."
            )
        return ProviderError(f"{self._shown} broke the connection: {_reason(error)}. Try again.")

    def check_reachable(self, attempts_per_call: int) -> None:
        """Stop the run when nobody has answered for long: call it when a call has used up its attempts."""
        calls = _CALLS_AFTER_AN_ANSWER if self._answered else _CALLS_BEFORE_FIRST_ANSWER
        if self._refused_in_a_row >= calls * attempts_per_call:
            since = "no longer answers" if self._answered else "does not answer"
            raise EndpointError(
                f"{self._shown} {since}: {calls} requests in a row got no answer. Start it, or correct api_base."
            )

    async def close(self) -> None:
        """Close all connections to the endpoint, and the timer of the deadlines."""
        self._deadlines.stop()
        exchange, self._exchange = self._exchange, None
        given_up, self._given_up = self._given_up, []
        for each in (*given_up, exchange):
            if each is not None:
                await each.close()

    def _open(self) -> Exchange:
        if self._exchange is not None and self._loop is asyncio.get_running_loop():
            return self._exchange
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._timeout)
        self._exchange = self._raw_exchange() or self._session_exchange()
        note_sent(self._headers, self.url)
        return self._exchange

    def _raw_exchange(self) -> Exchange | None:
        """The exchange that costs least; None where aiohttp is not inside as it expects."""
        from reward_kit.http.exchange import InternalsChangedError

        try:
            from reward_kit.http.raw_exchange import RawExchange

            return RawExchange(self.url, headers=self._headers, proxy=proxy_for(self.url), max_reply=self._max_reply)
        except (ImportError, InternalsChangedError) as error:
            _warn_of_sessions(error)
            return None

    def _session_exchange(self) -> Exchange:
        from reward_kit.http.exchange import SessionExchange

        return SessionExchange(self.url, headers=self._headers, proxy=proxy_for(self.url), max_reply=self._max_reply)

    def _falls_back(self, error: Exception) -> bool:
        """Whether `error` is about aiohttp's inside, and the request was not sent: then a session may send it.

        From such an error on, sessions send all requests. One that may have been sent is lost, as on a connection that
        broke: it is sent again only where that is allowed.
        """
        from reward_kit.http.exchange import InternalsChangedError, SessionExchange

        if not isinstance(error, InternalsChangedError):
            return False
        if self._exchange is not None and not isinstance(self._exchange, SessionExchange):
            _warn_of_sessions(error)
            self._given_up.append(self._exchange)  # others may still be waiting on it
            self._exchange = self._session_exchange()
        return not error.sent


def _url(api_base: str, route: str) -> str:
    """The address to post to; a query such as Azure's `?api-version=…` stays behind it."""
    try:
        parts = urlsplit(api_base)
    except ValueError:
        raise ConfigError(_NO_ADDRESS.format(mask(api_base))) from None
    if parts.username is not None or parts.password is not None:
        remember_settings({"api_base": api_base})
        raise ConfigError(
            f"api_base for {parts.hostname!r} holds credentials. Put the key into a variable: api_key_env."
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _port_is_valid(parts):
        raise ConfigError(_NO_ADDRESS.format(mask(api_base)))
    remember_settings({"api_base": api_base})
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(route) else path + route, fragment=""))


def _port_is_valid(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not {"\r", "\n", "\0"}.isdisjoint(f"{name}{value}"):
            raise ConfigError(
                f"The header {mask(name)!r} holds a line break. A header is one line: remove the line break."
            )
    remember_settings({"headers": dict(headers)})
    return headers


def note_sent(headers: Mapping[str, str], url: str = "") -> None:
    """Take note of the credentials in a request: those in its headers, and in its address."""
    named = {name: value for name, value in headers.items() if is_secret_name(name) or looks_secret(value)}
    for value in secret_values({"headers": named, "url": url}):
        sent(value)


def _sendable(api_key: str) -> str:
    if not (api_key.isascii() and api_key.isprintable()):
        raise AuthError("The API key holds characters that cannot be sent, such as a line break. Copy it again.")
    return api_key


def _warn_of_sessions(error: Exception) -> None:
    import aiohttp

    _log.warning(
        "The internals of aiohttp %s are not as expected (%s). Requests go through its ordinary sessions: the answers "
        "are the same, but each takes about three times the processor time.", aiohttp.__version__, mask(str(error)),
    )  # fmt: skip


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} ({mask(str(error))})" if str(error) else type(error).__name__
