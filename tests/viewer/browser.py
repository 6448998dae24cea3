# SPDX-License-Identifier: Apache-2.0
"""A browser without a window: asks the viewer's application as the page would, and listens to its events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from reward_kit.viewer.access import Access
from reward_kit.viewer.app import build_app
from reward_kit.viewer.assets import Assets
from reward_kit.viewer.viewer import Viewer, open_viewer

PORT = 4321


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.content)

    @property
    def error(self) -> str:
        """The code of what is wrong."""
        return str(self.json["error"]["code"])


class Browser:
    """Asks with the cookie that the token gave it."""

    def __init__(self, viewer: Viewer, assets: Assets | None = None) -> None:
        self.viewer = viewer
        self.access = Access(PORT)
        self.app: Any = build_app(viewer, self.access, assets=assets)
        self.headers = {"host": f"127.0.0.1:{PORT}", "cookie": self.access.set_cookie.partition(";")[0]}

    def ask(self, address: str, *, method: str = "GET", body: bytes = b"", **headers: str | None) -> Reply:
        """Ask; headers that are given take the place of the usual ones, or are left out where they are None."""
        given = {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        sent = {name: value for name, value in given.items() if value is not None}
        return asyncio.run(self._ask(address, method, body, sent))

    async def _ask(self, address: str, method: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        return await self._until(asyncio.Event().wait, address, method, body, headers)

    def leave(self, address: str, begun: threading.Event) -> Reply:
        """Ask, and go away when it was begun to work on the answer; what would have been answered."""

        async def gone() -> None:
            await asyncio.to_thread(begun.wait, 60)

        return asyncio.run(self._until(gone, address, "GET", b"", self.headers))

    async def _until(
        self, gone: Callable[[], Awaitable[Any]], address: str, method: str, body: bytes, headers: Mapping[str, str]
    ) -> Reply:
        parts: list[dict[str, Any]] = []
        bodies = [body]

        async def receive() -> dict[str, Any]:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(), "more_body": False}
            await gone()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            parts.append(message)

        await self.app(_scope(address, method, headers), receive, send)
        told = {name.decode(): value.decode() for name, value in parts[0]["headers"]}
        return Reply(parts[0]["status"], told, b"".join(part.get("body", b"") for part in parts[1:]))

    def get(self, address: str, **parameters: Any) -> Any:
        """What an address of the API answers; it must answer."""
        query = urlencode({name.rstrip("_"): value for name, value in parameters.items()}, doseq=True)
        reply = self.ask(f"{address}?{query}" if query else address)
        assert reply.status == 200, reply.content
        return reply.json

    def events(self, address: str, enough: Callable[[list[Any]], bool], do: Callable[[], None] | None = None) -> Any:
        """The events of an address until there are enough; then the page goes away. `do` is done after the first."""
        return asyncio.run(asyncio.wait_for(self._events(address, enough, do), 60))

    async def _events(self, address: str, enough: Callable[[list[Any]], bool], do: Callable[[], None] | None) -> Any:
        left, found, done = asyncio.Event(), [], do

        async def receive() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            nonlocal done
            for line in message.get("body", b"").split(b"\n"):
                if line.startswith(b"data: "):
                    found.append(json.loads(line[len(b"data: ") :]))
                    if done is not None:
                        done()
                        done = None
            if found and enough(found):
                left.set()

        await self.app(_scope(address, "GET", self.headers), receive, send)
        return found

    @property
    def keys(self) -> list[str]:
        """The keys of the runs."""
        return list(self.viewer.runs)

    def run(self, rest: str = "", **parameters: Any) -> Any:
        """What is below the address of the first run."""
        return self.get(f"/api/runs/{self.keys[0]}{rest}", **parameters)

    def sample(self, name: str, **parameters: Any) -> Any:
        """The page of a sample of the first run."""
        return self.run(f"/samples/{quote(name, safe='')}", **parameters)


def _scope(address: str, method: str, headers: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(address)
    from urllib.parse import unquote

    return {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": unquote(parts.path),
        "raw_path": parts.path.encode(), "query_string": parts.query.encode(), "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT), "asgi": {"version": "3.0", "spec_version": "2.3"},
    }  # fmt: skip


@contextmanager
def browsing(*paths: Path, **options: Any) -> Iterator[Browser]:
    """A browser in front of a viewer of these paths."""
    assets = options.pop("assets", None)
    with open_viewer(paths, **options) as viewer:
        yield Browser(viewer, assets)
