# SPDX-License-Identifier: Apache-2.0
"""Google ID tokens: signed by Google, made for this server, not expired, and of somebody on the list.

Google's public keys are fetched when they are first needed, and kept as long as Google says. A token with a key that is
not among them has them fetched again, at most once a minute, so that nobody can have us ask Google all the time. While
they cannot be fetched, a token with an unknown key is no wrong one: its caller is asked to come back.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from reward_kit.errors import needs_extra
from reward_kit.http.faults import moved_to
from reward_kit.serving.callers import Caller
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.settings import AccessSettings
from reward_kit.utils import exact_json

__all__ = ["Fetched", "GoogleTokens", "PublicKeys", "fetch_by_http"]

_log = logging.getLogger(__name__)

_ISSUERS = ["https://accounts.google.com", "accounts.google.com"]
_LEEWAY_SECONDS = 10
_FETCH_SECONDS = 10.0
_MOST_BYTES = 4 << 20
_OK = 200
_SHORTEST_LIFE, _LONGEST_LIFE = 300.0, 86_400.0
_RETRY_SECONDS = 60.0
_AGAIN_SECONDS = 2.0
"""After which keys that could not be fetched are asked for again."""
_STALE_SECONDS = 86_400.0
"""How long keys are used after they should have been fetched again, where that fails."""
_KEPT_TOKENS = 1024
_LONGEST_TOKEN = 16_384
_MAX_AGE = re.compile(r"max-age=(\d+)")


class Fetched(NamedTuple):
    """What a fetch of public keys gave."""

    keys: Mapping[str, Any]
    """A JSON Web Key Set."""
    max_age: float


Fetch = Callable[[str], Awaitable[Fetched]]


async def fetch_by_http(url: str) -> Fetched:
    """Fetch a key set from its address. Whatever goes wrong is an exception."""
    from reward_kit.http.exchange import HttpSession

    session = HttpSession(max_reply=_MOST_BYTES)
    try:
        reply = await session.request("GET", url, seconds=_FETCH_SECONDS)
    finally:
        await session.close()
    if reply.status != _OK:
        raise ValueError(moved_to(reply.status, reply.headers) or f"it answered {reply.status}")
    found = _MAX_AGE.search(reply.headers.get("cache-control", ""))
    return Fetched(exact_json.loads(reply.data), float(found[1]) if found else _SHORTEST_LIFE)


class PublicKeys:
    """The public keys that tokens are signed with, by their ids."""

    def __init__(self, url: str, fetch: Fetch = fetch_by_http, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str, Any] = {}
        self._fresh_until = self._tried = float("-inf")
        self._failed = False
        """Whether they could not be fetched when that was last tried."""
        self._fetching = asyncio.Lock()

    async def get(self, identity: str) -> Any | None:
        """The key with this id; None where there is none; a `Refusal` where the keys cannot be had now."""
        if self._is_owed(identity):
            async with self._fetching:
                if self._is_owed(identity):
                    await self._refresh()
        known = self._keys.get(identity) if self._clock() <= self._fresh_until + _STALE_SECONDS else None
        if known is None and self._failed:
            raise Refusal.not_known_now(self._tried + _AGAIN_SECONDS - self._clock())
        return known

    def _is_owed(self, identity: str) -> bool:
        if identity in self._keys and self._clock() <= self._fresh_until:
            return False
        return self._clock() - self._tried >= (_AGAIN_SECONDS if self._failed else _RETRY_SECONDS)

    async def _refresh(self) -> None:
        import jwt

        self._tried = self._clock()
        try:
            fetched = await self._fetch(self._url)
            keys = jwt.PyJWKSet.from_dict(dict(fetched.keys)).keys
        except Exception as error:  # noqa: BLE001 - a named boundary: whatever a network may do
            _log.warning("The public keys at %s cannot be fetched (%s). Tokens may be refused.", self._url, error)
            self._failed = True
            return
        self._failed = False
        self._keys = {key.key_id: key for key in keys if key.key_id}
        self._fresh_until = self._clock() + min(_LONGEST_LIFE, max(_SHORTEST_LIFE, fetched.max_age))


class GoogleTokens:
    """Finds out whose token it is."""

    def __init__(
        self, access: AccessSettings, keys: PublicKeys | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        with needs_extra("Checking Google ID tokens", "serve"):
            import jwt  # noqa: F401 - missed now rather than with the first token
        self._audience = access.google_audience
        self._allowed = {email.lower() for email in access.allow_emails}
        self._keys = keys or PublicKeys(access.google_certs_url)
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()
        """Tokens that were found good, by their digest: until when, and whose."""

    async def caller_of(self, token: str) -> Caller:
        """Whose token this is; a `Refusal` where it is not to be trusted, or of somebody else."""
        digest = hashlib.sha256(token.encode()).digest()
        if known := self._known.get(digest):
            if known[0] > self._clock():
                return known[1]
            del self._known[digest]
        expires, caller = await self._check(token)
        self._known[digest] = (expires, caller)
        while len(self._known) > _KEPT_TOKENS:
            self._known.popitem(last=False)
        return caller

    async def _check(self, token: str) -> tuple[float, Caller]:
        import jwt

        if len(token) > _LONGEST_TOKEN:
            raise Refusal.bad_credential()
        try:
            header = jwt.get_unverified_header(token)
            key = await self._keys.get(str(header.get("kid"))) if header.get("alg") == "RS256" else None
            if key is None:
                raise Refusal.bad_credential()
            claims = jwt.decode(
                token, key.key, algorithms=["RS256"], audience=self._audience, issuer=_ISSUERS, leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "email"], "strict_aud": True},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Refusal.bad_credential() from None
        email = str(claims["email"]).lower()
        if claims.get("email_verified") is not True or not self._is_allowed(email):
            raise Refusal.bad_credential()
        return float(claims["exp"]), Caller(email)

    def _is_allowed(self, email: str) -> bool:
        return email in self._allowed or f"*@{email.rpartition('@')[2]}" in self._allowed
