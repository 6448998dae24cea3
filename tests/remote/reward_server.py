# SPDX-License-Identifier: Apache-2.0
"""A reward's server for tests: it judges as it is told to, and remembers what it was asked and by whom."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes


class Told(NamedTuple):
    """What is answered to one."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = {}


@dataclass
class RewardServer:
    """What is served: `judge` a question, `batch` a list of them, `describe` the reward."""

    url: str = ""
    judge: Callable[[Any], Any] = lambda item: {"score": 1.0}
    batch: bool = True
    description: Any = None
    before: list[Told | Callable[[], Told | None]] = field(default_factory=list)
    """Answers that come first, in turn, whatever is asked."""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def answer(self, asked: Asked) -> Told:
        self.asked.append(asked)
        if self.before:
            first = self.before.pop(0)
            told = first if isinstance(first, Told) else first()
            if told is not None:
                return told
        path = urlsplit(asked.path).path
        if asked.method == "GET":
            return Told(404) if self.description is None else Told(200, self.description)
        if path.endswith("/batch"):
            if not self.batch:
                return Told(404, {"detail": "Not Found"})
            return Told(200, {"results": [self.judge(item) for item in asked.body["items"]]})
        return Told(200, self.judge(asked.body))

    @property
    def posted(self) -> list[Asked]:
        return [each for each in self.asked if each.method == "POST"]


@contextmanager
def serving(state: RewardServer, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[RewardServer]:
    """The server, on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            state.connections += 1
            super().setup()

        def handle(self) -> None:
            with suppress(ssl.SSLError, ConnectionError):  # a caller without the right certificate, or none any more
                super().handle()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(
                self.command, self.path, dict(self.headers), json.loads(raw) if raw[:1] == b"{" else None, raw
            )
            told = state.answer(asked)
            data = told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()
            with suppress(BrokenPipeError, ConnectionResetError):  # the caller gave up waiting
                self.send_response(told.status)
                for name, value in {"Content-Length": str(len(data)), **told.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    scheme = "http" if tls is None else "https"
    state.url = f"{scheme}://127.0.0.1:{server.server_port}/evaluate"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
