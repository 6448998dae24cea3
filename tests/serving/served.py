# SPDX-License-Identifier: Apache-2.0
"""A real server on loopback for the tests, and callers for it: raw sockets, so that anything can be said."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from reward_kit.config_models import RewardConfig
from reward_kit.serving.app import RewardApp, build_app
from reward_kit.serving.dialect import Extension
from reward_kit.serving.run import serve_app
from reward_kit.serving.settings import ServeSettings
from reward_kit.utils.event_loop import run_sync

PATIENCE = 60.0
"""Seconds that anything may take on a machine that is busy."""


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server(NamedTuple):
    address: str
    app: RewardApp

    @property
    def port(self) -> int:
        return int(urlsplit(self.address).port or 0)

    def connect(self) -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        line.settimeout(PATIENCE)
        return line

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Response:  # fmt: skip
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            if tls is None
            else http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=tls)
        )
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path, data, dict(headers or {}))
            found = connection.getresponse()
            return Response(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Response:
        return self.request("POST", path, body, headers)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Response:
        return self.request("GET", path, None, headers)

    def say(self, data: bytes, *, half_close: bool = False) -> bytes:
        """What comes back for these bytes until the server hangs up, or has answered each request it was sent."""
        with self.connect() as line:
            with contextlib.suppress(OSError):  # the server may hang up while it is still being spoken to
                line.sendall(data)
                if half_close:
                    line.shutdown(socket.SHUT_WR)
            return read_response(line)

    def is_fine(self) -> bool:
        """Whether the next request works."""
        return bool(self.post("/evaluate", asked("a", "a")).json["score"] == 1.0)

    def metric(self, name: str) -> float:
        """The value of a metric with its labels; 0 where it is not there yet."""
        for line in self.app.metrics.text().splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0


def read_response(line: socket.socket) -> bytes:
    """One response, or what came of it before the server hung up."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while True:
            head, end, rest = data.partition(b"\r\n\r\n")
            length = next((v for k, _, v in _fields(head) if k == b"content-length"), None) if end else None
            if length is not None and len(rest) >= int(length):
                return data
            if not (block := line.recv(65536)):
                return data
            data += block
    return data


def _fields(head: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    for field in head.split(b"\r\n")[1:]:
        name, colon, value = field.partition(b":")
        yield name.lower(), colon, value.strip()


def asked(answer: str, truth: Any = None, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}]
    return {"messages": messages, "ground_truth": truth, **more}


def raw(body: bytes, path: str = "/evaluate", method: str = "POST", *fields: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


def settings_for(rewards: Sequence[str], **more: Any) -> ServeSettings:
    named = {name: RewardConfig(function_path=name, timeout=more.pop("timeout", None)) for name in rewards}
    return ServeSettings.model_validate({"rewards": named, "port": 0, "access_log": None, **more})


@contextlib.contextmanager
def serving(
    function: Callable[..., Any] | Mapping[str, Callable[..., Any]], *, reward: Mapping[str, Any] | None = None,
    extensions: Sequence[Extension] = (), **settings: Any,
) -> Iterator[Server]:  # fmt: skip
    """A server in a thread of its own, ended gracefully with the block."""
    functions = dict(function) if isinstance(function, Mapping) else {"reward": function}
    rewards = {name: {"function_path": name, "workers": 2, **(reward or {})} for name in functions}
    told = ServeSettings.model_validate({"rewards": rewards, "port": 0, "access_log": None, **settings})
    app = build_app(told, functions=functions, extensions=extensions)
    listening: list[str] = []
    ready, faults = threading.Event(), list[BaseException]()
    control: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def on_listening(address: str) -> None:
        listening.append(address)
        ready.set()

    async def main() -> None:
        stop = asyncio.Event()
        control.append((asyncio.get_running_loop(), stop))
        await serve_app(app, on_listening, stop=stop)

    def run() -> None:
        try:
            run_sync(main)
        except BaseException as error:  # noqa: BLE001 - handed over to the test
            faults.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        if faults:
            raise faults[0]
        yield Server(listening[0], app)
    finally:
        for loop, stop in control:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
    if faults:
        raise faults[0]
