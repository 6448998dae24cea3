# SPDX-License-Identifier: Apache-2.0
"""Running a server: sockets, TLS, signals, limits, and an end that loses nothing.

    Server(app, limits)      an ASGI application under uvicorn: rewards, the viewer
    serving(app, …)          an application of aiohttp, which needs no extra: sandboxes, MCP, the mock server

On SIGTERM or SIGINT a server takes no new connections, requests in flight are answered, and idle connections are
closed. After `drain_seconds` what is left is given up. A second SIGINT does not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from reward_kit.errors import ConfigError
from reward_kit.http.server_limits import ServerLimits
from reward_kit.utils.event_loop import run_sync

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["Server", "address_of", "listen", "serve_until_ended", "serving", "tls_context"]

_BACKLOG = 2048


def listen(host: str, port: int, option: str = "`port`") -> socket.socket:
    """A socket that listens there, and is not handed on to other programs. `option` is what an error asks for."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"The address {host!r} cannot be used: {error}. Give another `host`.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigError(f"Cannot listen on {host} port {port}: {error.strerror}. Give another {option}.") from error
    return listening


def address_of(host: str, listening: socket.socket, *, tls: bool = False) -> str:
    """Where a server answers."""
    named = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{named}:{listening.getsockname()[1]}"


def tls_context(cert: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    """TLS 1.2 or later, with client certificates where they are asked for; None for plain HTTP."""
    if cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    with _explained("certificate", cert, key):
        context.load_cert_chain(cert, key, password=_no_password)
    if client_ca is not None:
        with _explained("client CA", client_ca):
            context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ConfigError("The private key of the server is locked by a password. Give one without.")


@contextlib.contextmanager
def _explained(what: str, *paths: Path | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ssl.SSLError) as error:
        names = " and ".join(repr(str(path)) for path in paths if path is not None)
        raise ConfigError(f"The {what} in {names} cannot be used: {error}. Give PEM files that fit.") from error


@contextlib.contextmanager
def _on_signals(end: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Have SIGINT and SIGTERM call `end` and kill nobody, where this is the thread that hears of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Server:
    """Serves an ASGI application. Needs uvicorn: an `ImportError` says that it is not there."""

    def __init__(
        self, app: Any, limits: ServerLimits, *, tls: ssl.SSLContext | None = None,
        refused: Callable[[str], None] = lambda kind: None, on_end: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`refused` is told of each caller that is cut off, by kind; `on_end`, that the end has begun."""
        import uvicorn

        from reward_kit.http.server_connection import LimitedConnection, Watch

        class DrainingServer(uvicorn.Server):
            """Ends without being killed by the signal that asked it to end."""

            def capture_signals(self) -> Any:
                return _on_signals(self.handle_exit)

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                on_end()
                super().handle_exit(sig, frame)

        # uvicorn logs a line for each bad request, and that at INFO it was started: our own log has both.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._watch = Watch(limits, refused)
        connection: Any = partial(LimitedConnection, watch=self._watch)
        config = uvicorn.Config(
            app, http=connection, lifespan="off", log_config=None, access_log=False, proxy_headers=False,
            server_header=False, ws="auto" if limits.message_bytes else "none", ws_max_size=limits.message_bytes,
            timeout_keep_alive=max(1, round(limits.keep_alive_seconds)),
            timeout_graceful_shutdown=round(limits.drain_seconds),
        )  # fmt: skip
        config.load()
        config.ssl = tls
        self._server = DrainingServer(config)

    async def serve(
        self, listening: socket.socket, ready: Callable[[], None] = lambda: None, *, stop: asyncio.Event | None = None
    ) -> None:
        """Serve until `stop` is set, or a signal comes where this is the main thread, `ready` being called first."""
        self._watch.start()
        stopping = None if stop is None else asyncio.ensure_future(self._when_set(stop))
        try:
            with self._server.capture_signals():  # none is lost while `ready` takes its time
                ready()
                await self._server.serve([listening])
        finally:
            self._watch.stop()
            if stopping is not None:
                stopping.cancel()

    async def _when_set(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._server.should_exit = True


@contextlib.asynccontextmanager
async def serving(
    app: web.Application, host: str, port: int, option: str = "`port`", *, drain_seconds: float = 60.0
) -> AsyncIterator[str]:
    """Serve while the context is entered; yields the address.

    What answers a request whose caller has left is cancelled, so that nothing waits for nobody.
    """
    from aiohttp import web

    with contextlib.closing(listen(host, port, option)) as listening:
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=drain_seconds)
        await runner.setup()
        try:
            await web.SockSite(runner, listening, backlog=_BACKLOG).start()
            yield address_of(host, listening)
        finally:
            await runner.cleanup()


def serve_until_ended(app: web.Application, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until a signal comes; `ready` is told the address as soon as the server answers there."""

    async def serve() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        with _on_signals(lambda *_: loop.call_soon_threadsafe(ended.set)):
            async with serving(app, host, port) as address:
                ready(address)
                await ended.wait()

    run_sync(serve)
