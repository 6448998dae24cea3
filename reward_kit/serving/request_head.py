# SPDX-License-Identifier: Apache-2.0
"""What the server itself reads in a request's headers: who calls, how much comes, and what the request is called."""

from __future__ import annotations

import base64
import binascii
import itertools
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reward_kit.serving.refusals import Refusal

__all__ = ["Credentials", "Head", "PlainHeaders", "new_request_id"]

_KEY_HEADERS = frozenset({b"x-api-key", b"api-key"})
"""Ours, and the one that Azure sends."""
_CREDENTIALS = frozenset({b"authorization", b"cookie", b"proxy-authorization"}) | _KEY_HEADERS
_WANTED = _KEY_HEADERS | frozenset(
    {b"authorization", b"content-length", b"content-encoding", b"x-request-id", b"origin", b"host"}
)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/-]{1,64}")
_BEARER, _BASIC = b"bearer ", b"basic "

_process = secrets.token_hex(6)
_number = itertools.count(1)


def new_request_id() -> str:
    """An id that no other request has, in this process or another."""
    return f"{_process}-{next(_number):x}"


class Credentials(NamedTuple):
    """What a request brings to say who sends it."""

    key: bytes | None = None
    """An API key."""
    bearer: bytes | None = None
    """A bearer token, which may be a key, too."""
    by_itself: bool = False
    """Whether a browser would send it to us with what any web page asks: a password that it has kept."""


class Head:
    """The headers that matter here. A credential may come once: of two, it would be unclear which counts."""

    __slots__ = ("_key", "_repeated", "authorization", "encoding", "host", "length", "origin", "request_id")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._key: bytes | None = None
        self.authorization: bytes | None = None
        self.encoding: bytes | None = None
        self.origin: bytes | None = None
        self.host: bytes | None = None
        self.length: int | None = None
        self._repeated: str | None = None
        given: bytes | None = None
        for name, value in headers:
            if name not in _WANTED:
                continue
            if name == b"content-length":
                self.length = int(value) if value.isdigit() else None
            elif name == b"x-request-id":
                given = value
            elif name == b"authorization":
                self._repeated = self._repeated or (None if self.authorization is None else "Authorization")
                self.authorization = value
            elif name in _KEY_HEADERS:
                self._repeated = self._repeated or (None if self._key is None else "X-Api-Key")
                self._key = value.strip()
            elif name == b"origin":
                self.origin = value
            elif name == b"host":
                self.host = value
            else:
                self.encoding = value
        known = given is not None and _REQUEST_ID.fullmatch(given)
        self.request_id = given.decode() if known and given is not None else new_request_id()

    def credentials(self) -> Credentials:
        """What came in the headers; of an address `http://anything:KEY@host`, clients make `Basic`."""
        if self._repeated is not None:
            raise Refusal.unreadable(f"The header {self._repeated} came twice. Send it once.")
        if self.authorization is None:
            return Credentials(self._key)
        if self.authorization[: len(_BEARER)].lower() == _BEARER:
            return Credentials(self._key, self.authorization[len(_BEARER) :].strip())
        if self.authorization[: len(_BASIC)].lower() == _BASIC:
            return Credentials(self._key or _password(self.authorization[len(_BASIC) :]), by_itself=self._key is None)
        raise Refusal.bad_credential()


def _password(encoded: bytes) -> bytes:
    try:
        return base64.b64decode(encoded.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        raise Refusal.bad_credential() from None


class PlainHeaders(Mapping[str, str]):
    """Headers for dialects: by their names in lower case, without credentials. Decoded when somebody looks."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = raw
        self._decoded: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._decoded is None:
            pairs = ((name, value) for name, value in self._raw if name not in _CREDENTIALS)
            self._decoded = {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}
        return self._decoded

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
