# SPDX-License-Identifier: Apache-2.0
"""One request of somebody who waits for it: the same rules, for code that is not asynchronous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reward_kit.utils.event_loop import run_sync

if TYPE_CHECKING:
    from reward_kit.http.exchange import Reply

__all__ = ["ask"]


def ask(
    method: str,
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float,
    proxied: bool = True,
    max_reply: int = 1 << 20,
) -> Reply:
    """The reply to one request, on a connection of its own, or an `HttpFault`."""

    async def asked() -> Reply:
        from reward_kit.http.exchange import HttpSession

        session = HttpSession(headers=headers or {}, proxied=proxied, max_reply=max_reply)
        try:
            return await session.request(method, url, data, seconds=seconds)
        finally:
            await session.close()

    return run_sync(asked)
