# SPDX-License-Identifier: Apache-2.0
"""Who may look: only whoever has the address that the terminal printed, and only from a page of this very server.

Host is ours?  ──▶  Origin is ours, or none?  ──▶  token in the address, or cookie?  ──▶  the application
(another name for 127.0.0.1 is a    (another site's page      (the token makes the cookie, which the
 DNS rebinding attack)               must not write here)      page's own requests then carry)
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

import orjson

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Access", "Guarded", "start_page"]

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-robots-tag": "noindex",
}
"""Sent with every answer. Nothing inline runs, nothing is fetched from elsewhere, nobody frames the page."""

_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_SAME_SITE = frozenset({"", "same-origin", "none"})
"""Where the browser says a request comes from: this page, or the person (an address typed, or opened by a program)."""


class Access:
    """The secret of one server, and what its address is."""

    def __init__(self, port: int) -> None:
        """Make the secrets; `port` is where the server listens."""
        self.token = secrets.token_urlsafe(24)
        self._once = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(32)
        self.port = port
        self.cookie = f"reward_kit_view_{port}"  # cookies are for all ports of a host: each server has its own name
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self.origins = frozenset(f"http://{host}" for host in self.hosts)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self._with(self.token)

    @property
    def address_once(self) -> str:
        """The same, with a token that lets in one browser, one time."""
        return self._with(self._once)

    def _with(self, token: str) -> str:
        return f"http://127.0.0.1:{self.port}/?{urlencode({'token': token})}"

    def has_token(self, query: bytes) -> bool:
        """Whether the address holds the token. The one that is good once is so no longer."""
        given = parse_qs(query.decode("latin-1")).get("token", [""])[-1].encode("utf-8", "surrogatepass")
        if secrets.compare_digest(given, self._once.encode()):
            self._once = secrets.token_urlsafe(24)
            return True
        return secrets.compare_digest(given, self.token.encode())

    def has_session(self, cookies: str) -> bool:
        """Whether the cookie is ours."""
        try:
            held = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return held is not None and secrets.compare_digest(held.value.encode(), self._session.encode())

    @property
    def set_cookie(self) -> str:
        """The header that gives the browser the cookie."""
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"


@contextmanager
def start_page(access: Access) -> Iterator[Path]:
    """A file that leads a browser here, which only its owner can read: command lines are for every user to see."""
    folder = Path(tempfile.mkdtemp(prefix="reward-kit-view-"))  # for its owner alone
    try:
        page = folder / "view.html"
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(_START_PAGE.format(access.address_once))
        yield page
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_START_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={}">
<title>reward-kit</title>
"""


class Guarded:
    """An application behind the checks."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Let through to `app` what `access` allows."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, and answer or pass on."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal, has_token = self._refusal(scope, headers)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                if has_token:
                    added.append((b"set-cookie", self._access.set_cookie.encode()))
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        if refusal is not None:
            await _refuse(send_guarded, *refusal, as_json=scope["path"].startswith("/api/"))
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[tuple[int, str, str] | None, bool]:
        """Why not, as status, code and message; and whether the token was given."""
        access = self._access
        if headers.get("host", "").lower() not in access.hosts:
            return (421, "wrong_host", "This server has another name. Open the address that the terminal shows."), False
        origin = headers.get("origin")
        foreign = origin is not None and origin.lower() not in access.origins
        unsaid = origin is None and scope["method"] in _WRITING
        if foreign or unsaid or headers.get("sec-fetch-site", "") not in _SAME_SITE | _navigation(headers):
            return (403, "wrong_origin", "Pages of other sites may not ask here. Use the viewer's own page."), False
        if access.has_token(scope.get("query_string", b"")):
            return None, scope["method"] == "GET"
        if access.has_session(headers.get("cookie", "")):
            return None, False
        message = "The key is missing or wrong. Open the whole address that `reward-kit view` shows in the terminal."
        return (401, "no_access", message), False


def _navigation(headers: Mapping[str, str]) -> frozenset[str]:
    """A link in another page, such as a terminal in the browser, may open this one, and do nothing else."""
    opens_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return frozenset({"cross-site", "same-site"}) if opens_page else frozenset()


async def _refuse(send: Send, status: int, code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        kind, body = b"application/json", orjson.dumps({"error": {"code": code, "message": message}})
    else:
        kind, body = b"text/plain; charset=utf-8", message.encode() + b"\n"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
