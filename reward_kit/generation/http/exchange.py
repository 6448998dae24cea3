"""Bodies posted to one address and their answers read, over aiohttp's pool of kept-alive connections.

A session of aiohttp prepares each request anew: address, headers, cookies, timers, a task that writes. Ours differ only
in their bodies, so what stands before the body is made once, and a request costs a third. Connecting (names, TLS,
proxies), pooling and parsing remain aiohttp's.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientRequest,
    ClientTimeout,
    ConnectionTimeoutError,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from reward_kit.errors import ReplyTooLargeError

__all__ = ["Exchange", "Reply"]

_LONGEST_CONNECT = 30.0
_SWITCHING_PROTOCOLS = 101
_FIRST_FINAL_STATUS = 200
_MOST_INTERIM = 100
"""Replies such as `100 Continue` before the real one."""
_ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""What is unpacked, by zlib's numbers for it. Others are not asked for."""


class Reply(NamedTuple):
    """What came back, whatever it means."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class Exchange:
    """Posts to one address, with the same headers each time. Belongs to the event loop it was made in."""

    faults: tuple[type[Exception], ...] = (ClientError, HttpProcessingError, OSError)
    """What `post` raises when the other side, or the way to it, is at fault."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str], proxy: str | None = None, max_reply: int = 64 << 20
    ) -> None:
        """Remember whom to ask, and through which proxy; connections are opened as they are needed.

        An answer of more than `max_reply` bytes, unpacked, is a `ReplyTooLargeError`.
        """
        self._max_reply = max_reply
        self._connector = TCPConnector(limit=0)  # how many are in flight is for whoever asks to say
        self._timeout = ClientTimeout(total=None, sock_connect=_LONGEST_CONNECT)
        self._request = ClientRequest(
            "POST",
            URL(url),
            headers={"Accept-Encoding": "gzip, deflate", **headers},
            proxy=None if proxy is None else URL(proxy),
            loop=asyncio.get_running_loop(),
        )
        self._head: bytes | None = None

    async def post(self, data: bytes) -> Reply:
        """The answer to one body, whole, or one of `faults`. A connection in doubt is not used again."""
        connection = await self._connect()
        try:
            reply = await self._converse(connection, data)
        except BaseException:
            connection.close()
            raise
        connection.release()
        return reply

    async def close(self) -> None:
        """Close the connections."""
        await self._connector.close()

    async def _connect(self) -> Connection:
        try:
            while True:
                connection = await self._connector.connect(self._request, [], self._timeout)
                if connection.protocol is None or not connection.protocol.should_close:
                    return connection
                connection.close()  # something came while nobody had asked: it must not pass for an answer
        except TimeoutError as error:
            raise ConnectionTimeoutError(f"no connection within {_LONGEST_CONNECT:g} s") from error

    async def _converse(self, connection: Connection, data: bytes) -> Reply:
        protocol = connection.protocol
        if protocol is None or protocol.transport is None:
            raise ServerDisconnectedError
        # Unpacked here and not by aiohttp, whose older versions unpack a bomb whole before anybody can look at it.
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        head = self._head
        if head is None:
            head = self._head = self._head_of_all()
        protocol.transport.write(b"%b%d\r\n\r\n%b" % (head, len(data), data))
        message, payload = await protocol.read()
        interim = 0
        while message.code < _FIRST_FINAL_STATUS and message.code != _SWITCHING_PROTOCOLS:  # more is to come
            interim += 1
            if interim > _MOST_INTERIM:
                raise ClientPayloadError(f"more than {_MOST_INTERIM} interim replies and no answer")
            message, payload = await protocol.read()
        # Most answers are here whole by now; waiting for one that is costs as much as parsing it did.
        answer = payload.read_nowait() if payload.is_eof() else await self._read(payload)
        if "Content-Encoding" in message.headers:
            answer = self._unpacked(answer, message.headers["Content-Encoding"].strip().lower())
        if len(answer) > self._max_reply:
            raise self._too_large()
        return Reply(message.code, message.headers, answer)

    async def _read(self, payload: StreamReader) -> bytes:
        """The body as it comes, as long as it is not too large."""
        parts, size = [], 0
        while part := await payload.readany():
            parts.append(part)
            size += len(part)
            if size > self._max_reply:
                raise self._too_large()
        return b"".join(parts)

    def _unpacked(self, data: bytes, encoding: str) -> bytes:
        """The body as it was before it was packed; a bomb is given up when it has become too large."""
        if encoding in ("", "identity") or not data:
            return data
        if encoding not in _ENCODINGS:
            raise ClientPayloadError(f"the answer is packed as {encoding!r}, which was not asked for")
        bits = _ENCODINGS[encoding]
        if encoding == "deflate" and data[0] & 0x0F != zlib.DEFLATED:  # some servers leave zlib's own head out
            bits = -zlib.MAX_WBITS
        parts, room = [], self._max_reply + 1
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
            f"The endpoint answered with more than {self._max_reply / (1 << 20):g} MB. "
            "Raise api_params.max_reply_mb if such answers are right."
        )

    def _head_of_all(self) -> bytes:
        """Everything before a body but its length. Only once there is a connection has a proxy set its headers."""
        request = self._request
        target = str(request.url) if request.proxy and not request.is_ssl() else request.url.raw_path_qs
        headers = [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "content-length"]
        return "\r\n".join([f"POST {target} HTTP/1.1", *headers, "Content-Length: "]).encode()
