# SPDX-License-Identifier: Apache-2.0
"""Running the server of rewards. At its end `/ready` says 503, and what is still judged after a while is given up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from reward_kit.errors import needs_extra
from reward_kit.http.server import Server, address_of, listen, tls_context
from reward_kit.http.server_limits import ServerLimits
from reward_kit.serving.app import RewardApp
from reward_kit.utils.event_loop import run_sync

__all__ = ["run_app", "serve_app"]


def run_app(app: RewardApp, on_listening: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. `on_listening` is told the address as soon as the server answers there."""
    run_sync(lambda: serve_app(app, on_listening))


async def serve_app(
    app: RewardApp, on_listening: Callable[[str], None] | None = None, *, stop: asyncio.Event | None = None
) -> None:
    """The same on a running loop, until `stop` is set, or a signal comes where this is the main thread."""
    settings = app.settings
    tls = tls_context(settings.tls.cert, settings.tls.key, settings.tls.client_ca)
    with contextlib.closing(listen(settings.host, settings.port)) as listening:
        with needs_extra("Serving rewards", "serve"):
            server = Server(app, _limits(app), tls=tls, refused=app.metrics.refused, on_end=app.begin_to_end)

        def ready() -> None:
            if on_listening is not None:
                on_listening(address_of(settings.host, listening, tls=tls is not None))

        async with app.open():
            await server.serve(listening, ready, stop=stop)


def _limits(app: RewardApp) -> ServerLimits:
    given = app.settings.limits
    message_bytes = int(given.body_mb * (1 << 20)) if app.has_extensions else 0
    return ServerLimits(
        given.connections, given.receive_seconds, given.send_seconds, given.keep_alive_seconds, given.drain_seconds,
        message_bytes,
    )  # fmt: skip
