# SPDX-License-Identifier: Apache-2.0
"""Running a server under uvicorn: sockets, TLS, signals, and an end that loses nothing.

On SIGTERM or SIGINT the server takes no new connections, `/ready` says 503, requests in flight are answered, and idle
connections are closed. After `limits.drain_seconds` what is left is answered with 503. A second SIGINT does not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from reward_kit.errors import ConfigError, MissingExtraError
from reward_kit.serving.app import RewardApp
from reward_kit.serving.settings import ServeSettings, TlsSettings
from reward_kit.utils.event_loop import run_sync

if TYPE_CHECKING:
    from uvicorn import Server

    from reward_kit.serving.http_protocol import Watch

__all__ = ["address_of", "listen", "run_app", "serve_app", "tls_context"]

_BACKLOG = 2048


def run_app(app: RewardApp, on_listening: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. `on_listening` is told the address as soon as the server answers there."""
    run_sync(lambda: serve_app(app, on_listening))


async def serve_app(
    app: RewardApp, on_listening: Callable[[str], None] | None = None, *, stop: asyncio.Event | None = None
) -> None:
    """The same on a running loop, until `stop` is set, or a signal comes where this is the main thread."""
    settings = app.settings
    tls = tls_context(settings.tls)
    try:
        from reward_kit.serving.http_protocol import Watch
    except ImportError as error:
        raise MissingExtraError("Serving rewards", "serve") from error
    with contextlib.closing(listen(settings.host, settings.port)) as listening:
        watch = Watch(settings.limits, app.metrics.refused)
        server = _server(app, watch, tls)
        async with app.open():
            watch.start()
            stopping = None if stop is None else asyncio.ensure_future(_when_set(stop, server))
            try:
                if on_listening is not None:
                    on_listening(address_of(settings, listening))
                await server.serve([listening])
            finally:
                watch.stop()
                if stopping is not None:
                    stopping.cancel()


async def _when_set(stop: asyncio.Event, server: Server) -> None:
    await stop.wait()
    server.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, and is not handed on to other programs."""
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
        raise ConfigError(f"Cannot listen on {host} port {port}: {error.strerror}. Give another `port`.") from error
    return listening


def address_of(settings: ServeSettings, listening: socket.socket) -> str:
    """Where the server answers."""
    scheme = "http" if settings.tls.cert is None else "https"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def tls_context(tls: TlsSettings) -> ssl.SSLContext | None:
    """TLS 1.2 or later, with client certificates where they are asked for; None for plain HTTP."""
    if tls.cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    with _explained("certificate", tls.cert, tls.key):
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    if tls.client_ca is not None:
        with _explained("client CA", tls.client_ca):
            context.load_verify_locations(tls.client_ca)
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


def _server(app: RewardApp, watch: Watch, tls: ssl.SSLContext | None) -> Server:
    import uvicorn

    from reward_kit.serving.http_protocol import LimitedProtocol

    limits = app.settings.limits

    class DrainingServer(uvicorn.Server):
        """Ends without being killed by the signal that asked it to end."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            app.ending = True
            super().handle_exit(sig, frame)

    # uvicorn logs a line for each bad request, and that at INFO it was started: our own log has both.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        _untyped(app), http=_untyped(partial(LimitedProtocol, watch=watch)), lifespan="off", log_config=None,
        access_log=False, proxy_headers=False, server_header=False, ws="auto" if app.has_extensions else "none",
        timeout_keep_alive=max(1, round(limits.keep_alive_seconds)),
        timeout_graceful_shutdown=round(limits.drain_seconds), ws_max_size=int(limits.body_mb * (1 << 20)),
    )  # fmt: skip
    config.load()
    config.ssl = tls
    return DrainingServer(config)


def _untyped(value: Any) -> Any:
    """For uvicorn, whose types know neither our application's words for a scope nor a class with an argument filled."""
    return value
