# SPDX-License-Identifier: Apache-2.0
"""Asking Fireworks' REST API, for one account.

The key goes to the API's own host and nowhere else: signed addresses for uploads and logs get none, and redirects are
not followed. A request that may pass later (429, 5xx, a lost connection) is sent again. Creating something is safe to
repeat, because we choose its id: where an attempt was lost and the next finds it there, it was made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import orjson

from reward_kit.auth import (
    get_fireworks_account_id,
    get_fireworks_api_base,
    get_fireworks_api_key,
    is_private_host,
)
from reward_kit.errors import AuthError, DeployError, ProviderError, RateLimitError
from reward_kit.http.faults import HttpFault, moved_to
from reward_kit.http.retry import Timing, retry_after, with_retries
from reward_kit.redaction import mask, remember
from reward_kit.utils.event_loop import run_sync

if TYPE_CHECKING:
    from reward_kit.http.exchange import Reply

__all__ = ["FireworksAPI", "Names", "PlatformAPIError", "Progress", "Unasked", "id_of"]

Progress = Callable[[int, int], None]
"""Told how many bytes of how many were sent."""

_RETRIES = 5
_SECONDS = 60.0
_SECONDS_TO_SEND = 3600.0
_CHUNK = 1 << 18
_SHOWN = 400
_CONFLICT, _NOT_FOUND, _TOO_MANY, _TIMEOUT = 409, 404, 429, 408
_LEAST_SERVER_ERROR = 500


class PlatformAPIError(DeployError):
    """Fireworks refused a request, or could not be asked."""

    def __init__(self, message: str, status_code: int | None = None, response_text: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.response_text = response_text


class Names(Protocol):
    """What gives things their full names: an account that is asked, or one that nobody asks yet."""

    def name(self, kind: str, thing: str) -> str:
        """The full name of a thing."""


class Unasked:
    """An account that is not known yet, and is not asked for: what `--dry-run` shows needs no key."""

    def __init__(self) -> None:
        self.base = get_fireworks_api_base()
        self.account = get_fireworks_account_id() or "<account>"

    def name(self, kind: str, thing: str) -> str:
        """As `FireworksAPI.name`."""
        return thing if thing.startswith("accounts/") else f"accounts/{self.account}/{kind}/{thing}"


class FireworksAPI:
    """One account, asked one request at a time. Without arguments, it is who the environment or `auth.ini` says."""

    def __init__(
        self,
        api_key: str | None = None,
        account_id: str | None = None,
        api_base: str | None = None,
        *,
        timing: Timing | None = None,
    ) -> None:
        self.base = (api_base or get_fireworks_api_base()).rstrip("/")
        self._key = api_key or get_fireworks_api_key() or ""
        remember(self._key)
        self._account_id = account_id or get_fireworks_account_id()
        self._timing = timing or Timing()
        self._check()

    def _check(self) -> None:
        if not self._key:
            raise AuthError(
                "Fireworks needs an API key and none was found. Set FIREWORKS_API_KEY, or put `api_key = …` into "
                "~/.fireworks/auth.ini."
            )
        url = urlsplit(self.base)
        if url.scheme != "https" and not is_private_host(url.hostname or ""):
            raise AuthError(f"The key of Fireworks would be sent unencrypted to {mask(self.base)!r}. Use https://.")

    @cached_property
    def account(self) -> str:
        """The account's id: as configured, else the one that the key belongs to."""
        if self._account_id:
            return self._account_id
        reply = self._ask("GET", f"{self.base}/verifyApiKey")
        found = reply.headers.get("x-fireworks-account-id")
        if not found:
            raise AuthError(
                "Fireworks does not say which account the key belongs to. Set FIREWORKS_ACCOUNT_ID, or put "
                "`account_id = …` into ~/.fireworks/auth.ini."
            )
        return found

    def name(self, kind: str, thing: str) -> str:
        """The full name of a thing, such as `accounts/me/evaluators/math`; one that is full already stays."""
        return thing if thing.startswith("accounts/") else f"accounts/{self.account}/{kind}/{thing}"

    # -- requests

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What is at a path, such as `accounts/me/evaluators/math`."""
        return self._call("GET", path, query=query)

    def find(self, path: str) -> dict[str, Any] | None:
        """What is at a path; None where nothing is."""
        try:
            return self.get(path)
        except PlatformAPIError as error:
            if error.status_code == _NOT_FOUND:
                return None
            raise

    def listed(self, path: str, key: str) -> list[dict[str, Any]]:
        """Everything that a list has, on all its pages."""
        found: list[dict[str, Any]] = []
        query = {"pageSize": "200"}
        while True:
            page = self.get(path, query)
            found += page.get(key) or []
            if not (token := page.get("nextPageToken")):
                return found
            query = {**query, "pageToken": token}

    def post(self, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Have something done."""
        return self._call("POST", path, body, query)

    def create(
        self, path: str, body: Mapping[str, Any], made: str, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Make the thing called `made`. One that was there before is a `PlatformAPIError` with status 409."""
        return self._call("POST", path, body, query, made=made)

    def patch(self, path: str, body: Mapping[str, Any], query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Change something."""
        return self._call("PATCH", path, body, query)

    def delete(self, path: str) -> bool:
        """Take something away; False where it was not there."""
        try:
            self._call("DELETE", path)
        except PlatformAPIError as error:
            if error.status_code == _NOT_FOUND:
                return False
            raise
        return True

    def put_signed(self, url: str, content: bytes, headers: Mapping[str, str], progress: Progress | None) -> None:
        """Send bytes to a signed address, which is its own permission: the key does not go there."""
        _check_signed(url)
        self._ask("PUT", url, content, headers, with_key=False, progress=progress)

    def read_signed(self, url: str) -> str:
        """The text at a signed address."""
        _check_signed(url)
        return self._ask("GET", url, with_key=False).data.decode(errors="replace")

    # -- one request

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        *,
        made: str | None = None,
    ) -> dict[str, Any]:
        url = f"{self.base}/v1/{quote(path, safe='/:')}"
        reply = self._ask(method, url, None if body is None else orjson.dumps(body), query=query, made=made)
        if not reply.data.strip():
            return {}
        try:
            found = orjson.loads(reply.data)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise PlatformAPIError(
                f"{method} {path} was answered with something else than a JSON object. Check FIREWORKS_API_BASE.",
                reply.status,
                _text(reply.data),
            )
        return found

    def _ask(
        self,
        method: str,
        url: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        with_key: bool = True,
        progress: Progress | None = None,
        made: str | None = None,
    ) -> Reply:
        sent = {"Content-Type": "application/json"} if content is not None else {}
        sent |= {"Authorization": f"Bearer {self._key}"} if with_key else {}
        sent |= headers or {}
        send = partial(_send, method, url, content, sent, query or {}, progress)
        lost = False

        async def attempt() -> Reply:
            nonlocal lost
            try:
                reply = await send()
                if reply.status == _CONFLICT and made is not None and lost:
                    reply = await _send("GET", f"{self.base}/v1/{quote(made, safe='/:')}", None, sent, {}, None)
                if (passing := _passing(reply, method, url)) is not None:
                    raise passing
            except ProviderError:
                lost = True
                raise
            return reply

        try:
            reply = run_sync(partial(with_retries, attempt, retries=_RETRIES, timing=self._timing))
        except (ProviderError, RateLimitError) as error:
            raise PlatformAPIError(f"{error} Run the same command again to go on.", _status_of(error)) from None
        _refuse(reply, method, url, with_key=with_key)
        return reply


class _Passing(ProviderError):
    """An answer that may be another one later."""

    def __init__(self, message: str, status: int, wait: float | None) -> None:
        super().__init__(message, retry_after=wait)
        self.status = status


def _status_of(error: Exception) -> int | None:
    return error.status if isinstance(error, _Passing) else None


def _passing(reply: Reply, method: str, url: str) -> _Passing | None:
    if reply.status not in (_TIMEOUT, _TOO_MANY) and reply.status < _LEAST_SERVER_ERROR:
        return None
    message = f"{method} {_without_query(url)} was answered with {reply.status}: {_text(reply.data)}"
    return _Passing(message, reply.status, retry_after(reply.headers))


def _refuse(reply: Reply, method: str, url: str, *, with_key: bool) -> None:
    """Raise what a refusal means."""
    if reply.status < 300:  # noqa: PLR2004 - the end of the statuses that mean success
        return
    words = f"{method} {_without_query(url)} was refused ({reply.status}): {_text(reply.data)}"
    if moved := moved_to(reply.status, reply.headers):
        words = f"{method} {_without_query(url)} was answered with {reply.status}: {moved}."
    if with_key and reply.status in (401, 403):
        raise AuthError(f"{words} Check FIREWORKS_API_KEY, and that its account may do this.")
    raise PlatformAPIError(words, reply.status, _text(reply.data))


async def _send(
    method: str,
    url: str,
    content: bytes | None,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    progress: Progress | None,
) -> Reply:
    """One request. A connection that cannot be had, or is lost, is a `ProviderError`."""
    from reward_kit.http.exchange import HttpSession

    data: bytes | AsyncIterator[bytes] | None = content
    if content is not None and progress is not None:
        data = _chunks(content, progress)
        headers = {**headers, "Content-Length": str(len(content))}
    session = HttpSession()
    try:
        return await session.request(
            method, f"{url}?{urlencode(query)}" if query else url, data, headers,
            seconds=_SECONDS if progress is None else _SECONDS_TO_SEND,
        )  # fmt: skip
    except HttpFault as fault:
        if fault.kind == "too_large":
            raise PlatformAPIError(f"{method} {_without_query(url)}: {fault}. Check FIREWORKS_API_BASE.") from None
        raise ProviderError(f"{method} {_without_query(url)} could not be sent: {fault}.") from None
    finally:
        await session.close()


async def _chunks(content: bytes, progress: Progress) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _CHUNK):
        yield content[start : start + _CHUNK]
        progress(min(len(content), start + _CHUNK), len(content))


def _check_signed(url: str) -> None:
    place = urlsplit(url)
    if place.scheme != "https" and not (place.scheme == "http" and is_private_host(place.hostname or "")):
        raise PlatformAPIError(
            f"Fireworks names an address that is not https: {_without_query(url)!r}. Nothing was sent."
        )


def _without_query(url: str) -> str:
    """A signed address without its signature."""
    return mask(url.partition("?")[0])


def _text(body: bytes) -> str:
    """What a refusal says, in one line."""
    try:
        said = orjson.loads(body)
        if isinstance(said, dict):
            inner = said.get("error")
            said = inner.get("message") if isinstance(inner, dict) else said.get("message") or inner
        words = said if isinstance(said, str) else body.decode(errors="replace")
    except orjson.JSONDecodeError:
        words = body.decode(errors="replace")
    words = " ".join(mask(words).split())[:_SHOWN]
    return words if words.endswith(".") else f"{words}."


def id_of(name: str) -> str:
    """The last part of a full name: the id alone."""
    return name.rpartition("/")[2]
