# SPDX-License-Identifier: Apache-2.0
"""Bodies posted to one address at a third of a session's cost, over aiohttp's pool of kept-alive connections.

A session of aiohttp prepares each request anew: address, headers, cookies, timers, a task that writes. Ours differ only
in their bodies, so what stands before the body is made once. Connecting (names, TLS, proxies), pooling and parsing
remain aiohttp's.

This rests on things inside aiohttp that no release promises: `ClientRequest` as the connector's key, the arguments of
`connect`, and a connection's `protocol` with `set_response_params`, `read`, `should_close` and a payload that can be
read at once. Each exchange rehearses one request in memory before its first real one. Where that goes otherwise than
expected, or a real one meets an attribute or an argument that is not there, it is an `InternalsChangedError`, and the
transport goes on with `SessionExchange`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, TypeVar

from aiohttp import (
    ClientPayloadError,
    ClientRequest,
    ClientTimeout,
    ConnectionTimeoutError,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from reward_kit.http.exchange import (
    FAULTS,
    LONGEST_CONNECT,
    InternalsChangedError,
    Reply,
    ReplyLimit,
    headers_to_send,
)

__all__ = ["RawExchange"]

_SWITCHING_PROTOCOLS = 101
_FIRST_FINAL_STATUS = 200
_MOST_INTERIM = 100
"""Replies such as `100 Continue` before the real one."""

T = TypeVar("T")


class RawExchange:
    """An exchange that writes its requests by hand. See `Exchange` for what `post` and `close` promise."""

    faults: ClassVar[tuple[type[Exception], ...]] = FAULTS

    def __init__(
        self, url: str, *, headers: Mapping[str, str], proxy: str | None = None, max_reply: int = 64 << 20
    ) -> None:
        """Rehearse a request, and remember whom to ask; connections are opened as they are needed.

        Raises `InternalsChangedError` where aiohttp is not as expected. An answer of more than `max_reply` bytes,
        unpacked, is a `ReplyTooLargeError`.
        """
        self._limit = ReplyLimit(max_reply)
        self._timeout = ClientTimeout(total=None, sock_connect=LONGEST_CONNECT)
        self._head: bytes | None = None
        try:
            self._request = ClientRequest(
                "POST",
                URL(url),
                headers=headers_to_send(headers),
                proxy=None if proxy is None else URL(proxy),
                loop=asyncio.get_running_loop(),
            )
            self._rehearse()
            self._connector = TCPConnector(limit=0)  # how many are in flight is for whoever asks to say
        except (AttributeError, TypeError, ValueError) as error:
            raise InternalsChangedError(f"{type(error).__name__}: {error}") from error

    async def post(self, data: bytes) -> Reply:
        """The answer to one body, whole, or one of `faults`. A connection in doubt is not used again."""
        try:
            connection = await self._connect()
        except (AttributeError, TypeError) as error:
            raise InternalsChangedError(f"{type(error).__name__}: {error}") from error
        try:
            head = self._head
            if head is None:
                head = self._head = self._head_of_all()
            reply = await self._converse(connection.protocol, head, data)
        except (AttributeError, TypeError) as error:
            connection.close()
            raise InternalsChangedError(f"{type(error).__name__}: {error}", sent=True) from error
        except BaseException:
            connection.close()
            raise
        connection.release()
        return reply

    async def close(self) -> None:
        """Close all connections to the endpoint."""
        await self._connector.close()

    async def _connect(self) -> Any:
        try:
            while True:
                connection = await self._connector.connect(self._request, [], self._timeout)
                if connection.protocol is None or not connection.protocol.should_close:
                    return connection
                connection.close()  # something came while nobody had asked: it must not pass for an answer
        except TimeoutError as error:
            raise ConnectionTimeoutError(f"no connection within {LONGEST_CONNECT:g} s") from error

    async def _converse(self, protocol: ResponseHandler | None, head: bytes, data: bytes) -> Reply:
        if protocol is None or protocol.transport is None:
            raise ServerDisconnectedError
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        protocol.transport.write(b"%b%d\r\n\r\n%b" % (head, len(data), data))
        message, payload = await protocol.read()
        interim = 0
        while message.code < _FIRST_FINAL_STATUS and message.code != _SWITCHING_PROTOCOLS:  # more is to come
            interim += 1
            if interim > _MOST_INTERIM:
                raise ClientPayloadError(f"more than {_MOST_INTERIM} interim replies and no answer")
            message, payload = await protocol.read()
        # Most answers are here whole by now; waiting for one that is costs as much as parsing it did.
        answer = payload.read_nowait() if payload.is_eof() else await self._limit.read(payload)
        return Reply(message.code, message.headers, self._limit.unpacked(answer, message.headers))

    def _head_of_all(self) -> bytes:
        """Everything before a body but its length. Only once there is a connection has a proxy set its headers."""
        request = self._request
        target = str(request.url) if request.proxy and not request.is_ssl() else request.url.raw_path_qs
        headers = [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "content-length"]
        return "\r\n".join([f"POST {target} HTTP/1.1", *headers, "Content-Length: "]).encode()

    # ── the rehearsal ────────────────────────────────────────────────────────────────────────────────────────────────

    def _rehearse(self) -> None:
        """Hold one conversation over a transport in memory, and compare everything that is relied on."""
        if [*inspect.signature(TCPConnector.connect).parameters] != ["self", "req", "traces", "timeout"]:
            raise TypeError("TCPConnector.connect takes other arguments")
        head = self._head_of_all()
        if head.lower().count(b"\r\nhost: ") != 1:
            raise ValueError("the headers of a ClientRequest do not name the host")
        protocol = ResponseHandler(asyncio.get_running_loop())
        transport = _Rehearsed(protocol)
        protocol.connection_made(transport)
        reply = _at_once(self._converse(protocol, head, b"{}"))
        if transport.written != head + b"2\r\n\r\n{}":
            raise ValueError("the request was not written as it is")
        if (reply.status, reply.headers.get("x-rehearsal"), reply.data) != (200, "yes", b"ok"):
            raise ValueError("the reply was not read as it was")
        if protocol.should_close:
            raise ValueError("a connection that could be kept would be closed")
        protocol.data_received(_Rehearsed.reply)
        if not protocol.should_close:
            raise ValueError("a connection that holds something unasked for would be kept")


class _Rehearsed(asyncio.Transport):
    """A connection in memory, on which the answer comes as soon as the request is written."""

    reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Rehearsal: yes\r\nContent-Length: 2\r\n\r\nok"

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._protocol = protocol
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)
        self._protocol.data_received(self.reply)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Does nothing: all of the answer is there already. aiohttp may call it."""

    def resume_reading(self) -> None:
        """Does nothing: all of the answer is there already. aiohttp may call it."""

    def close(self) -> None:
        """There is nothing to close."""

    abort = close


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise ValueError("the reply is here and was not read")
