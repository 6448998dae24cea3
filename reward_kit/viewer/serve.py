# SPDX-License-Identifier: Apache-2.0
"""Running the viewer: one socket on 127.0.0.1, one process, until Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from reward_kit.errors import MissingExtraError
from reward_kit.http.server import Server, listen
from reward_kit.http.server_limits import ServerLimits
from reward_kit.utils.event_loop import run_sync
from reward_kit.viewer.access import Access
from reward_kit.viewer.viewer import Viewer

__all__ = ["serve_viewer"]

_LIMITS = ServerLimits(connections=256, drain_seconds=1.0)


def serve_viewer(
    viewer: Viewer, port: int, on_listening: Callable[[Access], None], more: Sequence[Any] = ()
) -> None:  # fmt: skip
    """Serve until SIGINT or SIGTERM. `on_listening` is told how to get in as soon as the server answers.

    `more`: `app.ApiRoute`s of others.
    """
    with contextlib.closing(listen("127.0.0.1", port, "--port")) as listening:
        access = Access(listening.getsockname()[1])
        try:
            from reward_kit.viewer.app import build_app

            server = Server(build_app(viewer, access, more), _LIMITS)
        except ImportError as error:
            raise MissingExtraError("The viewer", "view") from error
        run_sync(lambda: server.serve(listening, lambda: on_listening(access)))
