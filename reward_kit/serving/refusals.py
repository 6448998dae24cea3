# SPDX-License-Identifier: Apache-2.0
"""Requests that are not served: each kind with one status and one body, which say nothing that helps to get in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["BUSY_SECONDS", "Refusal"]

BUSY_SECONDS = 1
"""That a caller is asked to wait at least before it tries again."""


class Refusal(Exception):
    """A request that is not served. It is raised wherever that is noticed, and answered in one place."""

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None, *, close: bool = False
    ) -> None:
        """`kind` is a short name for counting; `detail` is for the caller. `close`: the connection ends with it."""
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.headers = dict(headers or {})
        if close:
            self.headers["connection"] = "close"

    @property
    def body(self) -> dict[str, Any]:
        """What the caller is told."""
        return {"detail": str(self)}

    # -- who may call

    @classmethod
    def no_credential(cls) -> Refusal:
        """No key, token or certificate came with the request."""
        return cls(401, "no_credential", "A credential is needed.", {"www-authenticate": "Bearer"})

    @classmethod
    def bad_credential(cls) -> Refusal:
        """One came, and it is wrong, expired, or somebody else's: which of these is not told."""
        return cls(403, "bad_credential", "This credential is not accepted.")

    @classmethod
    def from_a_web_page(cls) -> Refusal:
        """A browser sends it for a page, with a certificate or password that it may have; pages must bring a key."""
        detail = "Web pages may not call this server without a key in a header. Protect it by a key, and send that."
        return cls(403, "web_page", detail)

    @classmethod
    def wrong_host(cls) -> Refusal:
        """It is called by a name that is not this machine's: a web page may have had its own name lead here."""
        detail = "This server has another name. Ask it as localhost, or protect it by a key."
        return cls(421, "wrong_host", detail)

    @classmethod
    def not_known_now(cls, seconds: float) -> Refusal:
        """What credentials are checked with cannot be had at the moment."""
        wait = _whole(seconds)
        detail = "Credentials cannot be checked at the moment. Ask again later."
        return cls(503, "cannot_check", detail, {"retry-after": wait})

    # -- how much

    @classmethod
    def too_fast(cls, seconds: float) -> Refusal:
        """A caller asks more often, or more at a time, than it may."""
        wait = _whole(seconds)
        return cls(429, "too_fast", "This caller asks more than it may. Ask again later.", {"retry-after": wait})

    @classmethod
    def busy(cls, seconds: float = BUSY_SECONDS) -> Refusal:
        """Too much waits already."""
        return cls(503, "busy", "The server is busy. Ask again later.", {"retry-after": _whole(seconds)})

    @classmethod
    def ending(cls) -> Refusal:
        """The server is about to end."""
        return cls(503, "ending", "The server is ending. Ask again.", {"retry-after": _whole(BUSY_SECONDS)}, close=True)

    @classmethod
    def too_large(cls, detail: str) -> Refusal:
        """More than one request may hold."""
        return cls(413, "too_large", detail)

    # -- what

    @classmethod
    def unreadable(cls, detail: str, status: int = 400) -> Refusal:
        """It cannot be understood."""
        return cls(status, "unreadable", detail)

    @classmethod
    def no_such_path(cls) -> Refusal:
        """Nothing is served there."""
        return cls(404, "no_such_path", "There is nothing at this path. GET / lists what there is.")

    @classmethod
    def wrong_method(cls, allowed: str) -> Refusal:
        """The path is served, and by another method."""
        return cls(405, "wrong_method", f"Use {allowed} here.", {"allow": allowed})


def _whole(seconds: float) -> str:
    return str(max(BUSY_SECONDS, round(seconds + 0.5)))
