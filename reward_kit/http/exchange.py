# SPDX-License-Identifier: Apache-2.0
"""Bodies posted to one address, and their answers read: by an ordinary session of aiohttp.

`raw_exchange` does the same at a third of the cost, as long as aiohttp is inside as it expects. This is what it falls
back to, and what both share: how large an answer may be, and how it is unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from io import BytesIO
from ssl import SSLContext
from typing import Any, ClassVar, NamedTuple, Protocol

from aiohttp import ClientError, ClientPayloadError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.http import HttpProcessingError
from yarl import URL

from reward_kit.errors import ReplyTooLargeError

__all__ = [
    "FAULTS",
    "LONGEST_CONNECT",
    "Exchange",
    "HttpSession",
    "InternalsChangedError",
    "Reply",
    "ReplyLimit",
    "SessionExchange",
    "headers_to_send",
]

FAULTS: tuple[type[Exception], ...] = (ClientError, HttpProcessingError, OSError)
LONGEST_CONNECT = 30.0
"""Seconds that opening a connection may take."""
_MOST_AT_ONCE = 1 << 20
"""Bytes of a request beyond which aiohttp warns of writing them at once."""
_ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""What is unpacked, by zlib's numbers for it. Others are not asked for."""


class Reply(NamedTuple):
    """What came back, whatever it means."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class InternalsChangedError(ClientError):
    """aiohttp is inside not as `raw_exchange` expects. `sent`: the endpoint may have received the request."""

    def __init__(self, what: str, *, sent: bool = False) -> None:
        """`what` says which part of aiohttp was found to be different."""
        super().__init__(what)
        self.sent = sent


class Exchange(Protocol):
    """Posts to one address, with the same headers each time. Belongs to the event loop it was made in."""

    faults: ClassVar[tuple[type[Exception], ...]]
    """What `post` raises when the other side, or the way to it, is at fault."""

    async def post(self, data: bytes) -> Reply:
        """The answer to one body, whole, or one of `faults`. A connection in doubt is not used again."""
        ...

    async def close(self) -> None:
        """Close all connections to the endpoint."""
        ...


class HttpSession:
    """Requests by a session of aiohttp, each to an address and with headers of its own.

    Nothing is followed: a redirect is a reply like any other, so that no header goes to a host it was not meant for.
    """

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        proxy: str | None = None,
        max_reply: int = 64 << 20,
        ssl: SSLContext | None = None,
    ) -> None:
        """Remember what all requests share; connections are opened as they are needed.

        An answer of more than `max_reply` bytes, unpacked, is a `ReplyTooLargeError`.
        """
        self._proxy = None if proxy is None else URL(proxy)
        self._limit = ReplyLimit(max_reply)
        self._ssl: SSLContext | bool = True if ssl is None else ssl
        self._session = ClientSession(
            connector=_Connector(limit=0),  # how many are in flight is for whoever asks to say
            headers=headers_to_send(headers),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=LONGEST_CONNECT),
            auto_decompress=False,
        )

    async def request(
        self, method: str, url: URL, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """The answer to one request, whole, or one of `FAULTS`. A connection in doubt is not used again."""
        body = data if data is None or len(data) <= _MOST_AT_ONCE else BytesIO(data)
        response = await self._session.request(
            method, url, data=body, headers=headers, proxy=self._proxy, allow_redirects=False, ssl=self._ssl
        )
        try:
            answer = self._limit.unpacked(await self._limit.read(response.content), response.headers)
        except BaseException:
            response.close()
            raise
        response.release()
        return Reply(response.status, response.headers, answer)

    async def close(self) -> None:
        """Close the session, and with it all connections."""
        await self._session.close()


class SessionExchange(HttpSession):
    """An exchange by a session of aiohttp, which prepares each request anew.

    One thing it cannot do: an endpoint that sends interim replies (`100 Continue`) without end is read for ever.
    """

    faults: ClassVar[tuple[type[Exception], ...]] = FAULTS

    def __init__(
        self, url: str, *, headers: Mapping[str, str], proxy: str | None = None, max_reply: int = 64 << 20
    ) -> None:
        """Remember whom to ask, and through which proxy; connections are opened as they are needed."""
        super().__init__(headers=headers, proxy=proxy, max_reply=max_reply)
        self._url = URL(url)

    async def post(self, data: bytes) -> Reply:
        """The answer to one body, whole, or one of `faults`. A connection in doubt is not used again."""
        return await self.request("POST", self._url, data)


class _Connector(TCPConnector):
    """Gives no connection to a request on which something came while nobody had asked: it would pass for an answer."""

    async def connect(self, *given: Any, **named: Any) -> Any:
        while True:
            connection = await super().connect(*given, **named)
            if not getattr(connection.protocol, "should_close", False):
                return connection
            connection.close()


def headers_to_send(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request. The length is each body's own, whatever somebody has set."""
    given = {name: value for name, value in headers.items() if name.lower() != "content-length"}
    return {"Accept-Encoding": "gzip, deflate", **given}


class _Stream(Protocol):
    async def readany(self) -> bytes: ...


class ReplyLimit:
    """How many bytes an answer may have, packed and unpacked; one that has more is a `ReplyTooLargeError`."""

    def __init__(self, most: int) -> None:
        self.most = most

    async def read(self, stream: _Stream) -> bytes:
        """The body as it comes, as long as it is not too large."""
        parts, size = [], 0
        while part := await stream.readany():
            parts.append(part)
            size += len(part)
            if size > self.most:
                raise self._too_large()
        return b"".join(parts)

    def unpacked(self, data: bytes, headers: Mapping[str, str]) -> bytes:
        """The body as it was before it was packed, where it is not too large.

        Done here and not by aiohttp, whose older versions unpack a bomb whole before anybody can look at it.
        """
        if "Content-Encoding" in headers:
            data = self._unpack(data, headers["Content-Encoding"].strip().lower())
        if len(data) > self.most:
            raise self._too_large()
        return data

    def _unpack(self, data: bytes, encoding: str) -> bytes:
        """The body unpacked; a bomb is given up when it has become too large."""
        if encoding in ("", "identity") or not data:
            return data
        if encoding not in _ENCODINGS:
            raise ClientPayloadError(f"the answer is packed as {encoding!r}, which was not asked for")
        bits = _ENCODINGS[encoding]
        if encoding == "deflate" and data[0] & 0x0F != zlib.DEFLATED:  # some servers leave zlib's own head out
            bits = -zlib.MAX_WBITS
        parts, room = [], self.most + 1
        try:
            while data and room > 0:  # gzip may come in several members
                unpack = zlib.decompressobj(bits)
                parts.append(unpack.decompress(data, room))
                room -= len(parts[-1])
                if room > 0 and not unpack.eof:
                    raise ClientPayloadError("the packed answer is not whole")
                data = unpack.unused_data
        except zlib.error as error:
            raise ClientPayloadError(f"the answer cannot be unpacked: {error}") from None
        return b"".join(parts)

    def _too_large(self) -> ReplyTooLargeError:
        return ReplyTooLargeError(
            f"The endpoint answered with more than {self.most / (1 << 20):g} MB. "
            "Raise api_params.max_reply_mb if such answers are right."
        )
