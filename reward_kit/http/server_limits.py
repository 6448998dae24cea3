# SPDX-License-Identifier: Apache-2.0
"""What a server allows its callers, and where it tells an application who they are."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PEER_NAMES", "ServerLimits"]

PEER_NAMES = "reward_kit_peer_names"
"""Where the state of a connection has the names in the caller's certificate, such as `dns:trainer.example`."""


class ServerLimits(NamedTuple):
    """How many connections, and how long each may take."""

    connections: int = 4096
    receive_seconds: float = 30.0
    """That a caller may take to send a request."""
    send_seconds: float = 30.0
    """That a caller may take to read a reply."""
    keep_alive_seconds: float = 75.0
    """That a connection may be idle."""
    drain_seconds: float = 30.0
    """That requests in flight are waited for at the end."""
    message_bytes: int = 0
    """Of one message of a WebSocket; 0: there are none."""
