# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the way to somebody else, in the words of this room; and what a redirect is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reward_kit.redaction import mask

__all__ = ["FaultKind", "HttpFault", "fault_of", "moved_to"]

FaultKind = Literal["unreached", "untrusted", "late", "broken", "too_large"]
"""Nobody answers there; its certificate, or ours, is not taken; no whole reply in time; it ended in the middle."""


class HttpFault(Exception):
    """No reply, or no whole one, came."""

    def __init__(self, kind: FaultKind, reason: str) -> None:
        """`reason` says what was seen. Whoever asked says whom, and what to do."""
        super().__init__(reason)
        self.kind: FaultKind = kind


def fault_of(error: Exception) -> HttpFault:
    """The fault that an error of aiohttp, or of a socket, stands for; its words are masked."""
    import aiohttp

    reason = mask(str(error)) or type(error).__name__
    if isinstance(error, aiohttp.ClientSSLError):
        return HttpFault("untrusted", reason)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return HttpFault("unreached", reason)
    if isinstance(error, TimeoutError):
        return HttpFault("late", reason)
    return HttpFault("broken", reason)


def moved_to(status: int, headers: Mapping[str, str]) -> str | None:
    """What to say of a redirect; None of any other reply."""
    if not 300 <= status < 400:  # noqa: PLR2004
        return None
    where = mask(headers.get("Location", "elsewhere"))
    return f"it is at {where!r}. Give that address: no redirect is followed, because all that is sent would go there"
