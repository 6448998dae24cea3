# SPDX-License-Identifier: Apache-2.0
"""Running the viewer: one socket on 127.0.0.1, one process, until Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

from reward_kit.errors import ConfigError, MissingExtraError
from reward_kit.viewer.access import Access
from reward_kit.viewer.viewer import Viewer

__all__ = ["serve_viewer"]

_HOST = "127.0.0.1"
_BACKLOG = 128


def serve_viewer(
    viewer: Viewer, port: int, on_listening: Callable[[Access], None], more: Sequence[Any] = ()
) -> None:  # fmt: skip
    """Serve until SIGINT or SIGTERM. `on_listening` is told how to get in as soon as the server answers.

    `more`: `app.ApiRoute`s of others.
    """
    try:
        import uvicorn

        from reward_kit.viewer.app import build_app
    except ImportError as error:
        raise MissingExtraError("The viewer", "view") from error
    with contextlib.closing(_listen(port)) as listening:
        access = Access(listening.getsockname()[1])
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        config = uvicorn.Config(
            build_app(viewer, access, more),
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
        )
        server = uvicorn.Server(config)
        with contextlib.suppress(KeyboardInterrupt), server.capture_signals():  # none is lost while a browser starts
            on_listening(access)
            server.run([listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_HOST, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigError(f"Cannot listen on {_HOST} port {port}: {error.strerror}. Give another --port.") from error
    return listening
