# SPDX-License-Identifier: Apache-2.0
"""Requests by an ordinary session of aiohttp, under the rules of this room: `HttpSession`.

`raw_exchange` posts bodies to one address at a third of the cost, as long as aiohttp is inside as it expects. This is
also what it falls back to (`SessionExchange`), and what both share: how large an answer may be, how it is unpacked.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from ssl import SSLContext
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    FormData,
    TCPConnector,
)
from aiohttp.http import HttpProcessingError
from yarl import URL

from reward_kit.errors import ReplyTooLargeError
from reward_kit.http.faults import HttpFault, fault_of
from reward_kit.http.proxies import proxy_for
from reward_kit.redaction import remember_settings

__all__ = [
    "FAULTS",
    "LONGEST_CONNECT",
    "Body",
    "Exchange",
    "HttpSession",
    "InternalsChangedError",
    "Reply",
    "ReplyLimit",
    "Response",
    "SessionExchange",
    "form",
    "headers_to_send",
]

FAULTS: tuple[type[Exception], ...] = (ClientError, HttpProcessingError, OSError)
LONGEST_CONNECT = 30.0
"""Seconds that opening a connection may take."""
LARGEST_REPLY = 64 << 20
"""Bytes of a reply, unpacked, where nobody says otherwise."""
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


Body = bytes | AsyncIterable[bytes] | FormData
"""What a request sends: bytes, pieces as they are made, or a form."""


class Response:
    """A reply of which the status and the headers are here, and the body is still to come."""

    def __init__(self, response: ClientResponse, limit: ReplyLimit) -> None:
        self._response, self._limit = response, limit
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces of any size. How much of it is too much is for the caller to say."""
        if self.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise HttpFault("broken", "the reply is packed, which was not asked for")
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except FAULTS as error:
            raise fault_of(error) from error

    async def read(self) -> bytes:
        """The whole body, where it is not too large."""
        try:
            body = await self._limit.read(self._response.content)
            return self._limit.unpacked(body, self.headers)
        except FAULTS as error:
            raise fault_of(error) from error
        except ReplyTooLargeError:
            raise self._limit.fault() from None


class HttpSession:
    """Requests by a session of aiohttp, each to an address and with headers of its own.

    Nothing is followed: a redirect is a reply like any other, so that nothing goes to a host it was not meant for.
    Replies are bounded, the proxies of the environment are heeded, and no cookie is kept.
    """

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        proxied: bool = True,
        max_reply: int | None = None,
        ssl: SSLContext | None = None,
        silence: float | None = None,
        connections: int = 0,
    ) -> None:
        """Remember what all requests share; connections are opened as they are needed.

        A reply of more than `max_reply` bytes, unpacked, is a fault; so is one of which nothing comes for `silence`
        seconds. `connections` bounds how many there are at a time, 0 does not. `proxied`: whether a proxy may be used.
        """
        remember_settings(dict(headers or {}))  # by their names: most headers are no credentials
        self._proxied = proxied
        self._proxies: dict[tuple[str, str | None], URL | None] = {}
        self._limit = ReplyLimit(LARGEST_REPLY if max_reply is None else max_reply)
        self._ssl: SSLContext | bool = True if ssl is None else ssl
        self._session = ClientSession(
            connector=_Connector(limit=connections),
            headers=headers_to_send(headers or {}),
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=LONGEST_CONNECT, sock_read=silence),
            auto_decompress=False,
        )

    async def request(
        self,
        method: str,
        url: str | URL,
        data: Body | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float | None = None,
    ) -> Reply:
        """The whole reply to one request, or an `HttpFault`. A connection in doubt is not used again."""
        async with self.open(method, url, data, headers, seconds=seconds, packed=True) as response:
            return Reply(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str | URL,
        data: Body | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        seconds: float | None = None,
        packed: bool = False,
    ) -> AsyncIterator[Response]:
        """A reply whose body is read as it comes; all of it within `seconds`. `packed`: whether it may be packed."""
        sent = {**({} if packed else {"Accept-Encoding": "identity"}), **(headers or {})}
        try:
            async with asyncio.timeout(seconds) as limit:
                try:
                    response = await self._send(method, _address(url), data, sent)
                except FAULTS as error:
                    raise fault_of(error) from error
                except ValueError as error:
                    raise HttpFault("unreached", f"it is no address ({error})") from error
                try:
                    yield Response(response, self._limit)
                except BaseException:
                    response.close()
                    raise
                response.release()
        except TimeoutError:
            if not limit.expired():
                raise
            raise HttpFault("late", f"no whole reply within {seconds:g} s") from None

    async def close(self) -> None:
        """Close the session, and with it all connections."""
        await self._session.close()

    async def _send(
        self, method: str, url: URL, data: Body | None, headers: Mapping[str, str] | None = None
    ) -> ClientResponse:
        body = BytesIO(data) if isinstance(data, bytes) and len(data) > _MOST_AT_ONCE else data
        return await self._session.request(
            method, url, data=body, headers=headers, proxy=self._proxy_for(url), allow_redirects=False, ssl=self._ssl
        )

    def _proxy_for(self, url: URL) -> URL | None:
        if not self._proxied:
            return None
        origin = (url.scheme, url.host)
        if origin not in self._proxies:
            proxy = proxy_for(str(url))
            self._proxies[origin] = None if proxy is None else URL(proxy)
        return self._proxies[origin]


class SessionExchange(HttpSession):
    """An exchange by a session of aiohttp, which prepares each request anew.

    One thing it cannot do: an endpoint that sends interim replies (`100 Continue`) without end is read for ever.
    """

    faults: ClassVar[tuple[type[Exception], ...]] = FAULTS

    def __init__(
        self, url: str, *, headers: Mapping[str, str], proxy: str | None = None, max_reply: int = 64 << 20
    ) -> None:
        """Remember whom to ask, and through which proxy; connections are opened as they are needed."""
        super().__init__(headers=headers, max_reply=max_reply)
        self._url = URL(url)
        self._proxies[self._url.scheme, self._url.host] = None if proxy is None else URL(proxy)

    async def post(self, data: bytes) -> Reply:
        """The answer to one body, whole, or one of `faults`. A connection in doubt is not used again."""
        response = await self._send("POST", self._url, data)
        try:
            answer = self._limit.unpacked(await self._limit.read(response.content), response.headers)
        except BaseException:
            response.close()
            raise
        response.release()
        return Reply(response.status, response.headers, answer)


def _address(url: str | URL) -> URL:
    """The address as it is written, where it can be sent so: one that is signed would not be the same otherwise."""
    return URL(url, encoded=isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url)


def form(fields: Mapping[str, str], file: BinaryIO, name: str, kind: str) -> FormData:
    """A form with these fields and a file, which is read as it is sent."""
    made = FormData()
    for field, value in fields.items():
        made.add_field(field, value)
    made.add_field("file", file, filename=name, content_type=kind)
    return made


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

    def fault(self) -> HttpFault:
        """The same, as a fault."""
        return HttpFault("too_large", f"it answered with more than {self.most / (1 << 20):g} MB")

    def _too_large(self) -> ReplyTooLargeError:
        return ReplyTooLargeError(
            f"The endpoint answered with more than {self.most / (1 << 20):g} MB. "
            "Raise api_params.max_reply_mb if such answers are right."
        )
