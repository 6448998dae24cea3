# SPDX-License-Identifier: Apache-2.0
"""One connection to an MCP server: a request goes, its reply comes, or the server has failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reward_kit.errors import EnvironmentFailure

__all__ = ["Bounds", "Channel", "McpServerFailure", "ReplyTooLarge"]


class McpServerFailure(EnvironmentFailure):
    """An MCP server died, cannot be reached, or answers nonsense: the world failed, and not the model."""

    retryable = True


class ReplyTooLarge(Exception):
    """A reply was larger than is taken, and was thrown away. The connection is good for more."""

    def __init__(self, most: int) -> None:
        """Say how much is taken."""
        super().__init__(f"The reply was larger than {most:,} bytes and was thrown away.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken from a server. It may be hostile, or have been talked into it."""

    reply_bytes: int = 8 * 2**20
    """The largest message. A larger one is thrown away while it comes, so it takes no memory."""
    stray_messages: int = 10_000
    """Messages that nobody asked for, between two that somebody did: notifications, wrong ids, what is no JSON."""
    stderr_bytes: int = 4096
    """What is kept of the end of its error output, for messages."""


class Channel(Protocol):
    """One connection. Requests may be on their way at the same time; the channel may let them wait for each other."""

    tools_changed: bool
    """Set when the server says that its tools have changed; whoever lists them again sets it back."""

    @property
    def alive(self) -> bool:
        """Whether a request has a chance, as far as is known."""
        ...

    async def exchange(
        self, message: Mapping[str, Any], *, headers: Mapping[str, str], timeout: float | None
    ) -> dict[str, Any]:
        """The reply to a request, which has `result` or `error`.

        A `TimeoutError` where none comes in time, upon which the server is told to stop, as it is when the caller is
        cancelled; `ReplyTooLarge`; or an `McpServerFailure`. A refusal by HTTP without a JSON-RPC error is an
        `RpcError` with the status as code.
        """
        ...

    async def notify(self, message: Mapping[str, Any], *, headers: Mapping[str, str]) -> None:
        """Send what has no reply."""
        ...

    async def close(self) -> None:
        """End the connection, and the server where it is ours. May be called twice."""
        ...
