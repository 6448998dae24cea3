# SPDX-License-Identifier: Apache-2.0
"""A connection of uvicorn, with what it does not limit by itself, and with what it does not tell.

    a request that takes too long to arrive, its headers or its body     408, and the connection ends
    headers that are too large                                           431, and the connection ends
    a caller that does not read its reply                                the connection ends
    more connections than there may be                                   503, and the connection ends
    a body that is refused before it was read                            what still comes is thrown away, for a while
    a caller that closes its half of the connection after its request    it still gets its reply
    the names in the caller's certificate                                in the state of each request

Times are looked at once a second for all connections together, so that a request pays nothing for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from reward_kit.http.server_limits import PEER_NAMES, ServerLimits

__all__ = ["LimitedConnection", "Watch", "peer_names"]

_LARGEST_HEAD = 64 << 10
_HANDSHAKE = frozenset({b"sec-websocket-key", b"sec-websocket-version"})
_LOOK_SECONDS = 1.0
_LINGER_SECONDS = 5.0
"""How long what comes of a body that was refused is thrown away: a caller that is still sending reads no reply."""


class Watch:
    """Looks after all connections of a server once a second; refused ones are counted by kind."""

    def __init__(self, limits: ServerLimits, refused: Callable[[str], None]) -> None:
        self.limits = limits
        self.refused = refused
        self.connections: set[LimitedConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look now and again, on the running loop."""
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now = time.monotonic()
        for connection in tuple(self.connections):
            connection.look(now)
        self.start()


def peer_names(certificate: dict[str, Any] | None) -> tuple[str, ...]:
    """The subject alternative names of a certificate, each with its kind before it, in lower case."""
    names = (certificate or {}).get("subjectAltName", ())
    return tuple(f"{kind}:{name}".lower() for kind, name in names)


class LimitedConnection(HttpToolsProtocol):
    """One connection, made by uvicorn for each caller."""

    def __init__(
        self, *, watch: Watch, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self._watch = watch
        self.receiving_since: float | None = None
        """Since when a request has been on its way that is not whole yet."""
        self.unread_since: float | None = None
        """Since when the caller has not read what is sent."""
        self.linger_until: float | None = None
        """Until when what comes of a refused body is thrown away."""
        self.head_bytes = 0

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if names := peer_names(transport.get_extra_info("peercert")):
            self.app_state = {**self.app_state, PEER_NAMES: names}
        super().connection_made(transport)
        self._watch.connections.add(self)
        self.receiving_since = time.monotonic()
        if len(self._watch.connections) > self._watch.limits.connections:
            self.cut_off(b"503 Service Unavailable", "connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.connections.discard(self)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Go on where a whole request is being answered: its caller only has nothing more to say."""
        cycle = self._current()
        if cycle is None or cycle.response_complete or cycle.more_body or self.scheme != "http":
            return False
        cycle.keep_alive = False
        return True

    def _current(self) -> RequestResponseCycle | None:
        """The request that came last; None before the first."""
        return self.cycle

    def look(self, now: float) -> None:
        """End what takes too long."""
        if self.receiving_since is not None and now - self.receiving_since > self._watch.limits.receive_seconds:
            self.cut_off(b"408 Request Timeout", "slow")
        elif self.unread_since is not None and now - self.unread_since > self._watch.limits.send_seconds:
            self._watch.refused("unread")
            self.transport.abort()
        elif self.linger_until is not None and now > self.linger_until:
            self.transport.abort()

    def cut_off(self, status: bytes, kind: str) -> None:
        """Say why, if nothing is being said yet, and end the connection."""
        self._watch.refused(kind)
        cycle = self._current()
        if cycle is None or not cycle.response_started or cycle.response_complete:
            head = b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status
            self.transport.write(head)
        self.transport.close()
        self.linger_until = time.monotonic()  # should the caller not read even that
        self.receiving_since = None

    # -- what comes

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.receiving_since is None and self.linger_until is None:
            self.receiving_since = time.monotonic()
        self.head_bytes += len(data)
        super().data_received(data)
        if self.head_bytes > _LARGEST_HEAD:
            self.cut_off(b"431 Request Header Fields Too Large", "large_head")

    def handle_websocket_upgrade(self) -> None:
        names = {name for name, _ in self.headers}
        if self.scope["method"] != "GET" or not names >= _HANDSHAKE or b"content-length" in names:
            self.cut_off(b"400 Bad Request", "handshake")
            return
        self._watch.connections.discard(self)  # the protocol of WebSockets has limits of its own
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        self.receiving_since = time.monotonic()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.head_bytes = -(1 << 62)  # what comes now is body
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.head_bytes = 0
        self.receiving_since = self.linger_until = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.cycle.more_body and not self.pipeline:
            self.receiving_since = None
            self.linger_until = time.monotonic() + _LINGER_SECONDS
        super().on_response_complete()

    # -- what goes

    def pause_writing(self) -> None:
        self.unread_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.unread_since = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()
