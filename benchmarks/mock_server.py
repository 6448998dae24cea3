# SPDX-License-Identifier: Apache-2.0
"""A fast mock of an OpenAI-compatible endpoint, for benchmarks: answers are prebuilt, parsing is a few byte searches.

    python benchmarks/mock_server.py --port 0 --latency-ms 0 --workers 1

prints one line of JSON with its port, then serves until it is told to stop (SIGTERM or SIGINT):

    POST anything    a chat completion with as many choices as the request's `n` asks for
    GET  /stats      {"requests", "choices", "connections"} so far
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import multiprocessing
import os
import re
import signal
import socket
from collections.abc import MutableSequence
from typing import NamedTuple, cast

import orjson

_CHOICES = re.compile(rb'(?<!\\)"n":\s*(\d+)')
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_COUNTERS = 3


class Behaviour(NamedTuple):
    """What the server says, and how long it thinks first."""

    answer: str
    latency: float
    ignore_n: bool


class Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection; requests on it are answered in order, one at a time."""

    def __init__(self, behaviour: Behaviour, counters: MutableSequence[int], worker: int) -> None:
        """Serve with `behaviour`, counting into this worker's slots of `counters`."""
        self._behaviour = behaviour
        self._counters = counters
        self._first_slot = worker * _COUNTERS
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        self._transport = cast(asyncio.WriteTransport, transport)
        self._counters[self._first_slot + 2] += 1

    def data_received(self, data: bytes) -> None:
        """Answer every whole request received so far."""
        self._received = self._received + data if self._received else data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._received, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < whole:
                return
            request, self._received = self._received[:whole], self._received[whole:]
            self._answer(request, end + 4)

    def _answer(self, request: bytes, body_at: int) -> None:
        if request.startswith(b"GET"):
            self._write(_framed(orjson.dumps(_totals(self._counters))))
            return
        asked = None if self._behaviour.ignore_n else _CHOICES.search(request, body_at)
        choices = int(asked[1]) if asked else 1
        self._counters[self._first_slot] += 1
        self._counters[self._first_slot + 1] += choices
        response = _completion(self._behaviour.answer, choices)
        if self._behaviour.latency:
            asyncio.get_running_loop().call_later(self._behaviour.latency, self._write, response)
        else:
            self._write(response)

    def _write(self, response: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(response)


@functools.lru_cache
def _completion(answer: str, choices: int) -> bytes:
    return _framed(
        orjson.dumps(
            {
                "id": "chatcmpl-mock",
                "object": "chat.completion",
                "created": 1_700_000_000,
                "model": "mock-model",
                "choices": [
                    {"index": i, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
                    for i in range(choices)
                ],
                "usage": {"prompt_tokens": 20, "completion_tokens": 8 * choices, "total_tokens": 20 + 8 * choices},
            }
        )
    )


def _framed(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head + body


def _totals(counters: MutableSequence[int]) -> dict[str, int]:
    names = ("requests", "choices", "connections")
    return {name: sum(counters[slot::_COUNTERS]) for slot, name in enumerate(names)}


async def _serve(listener: socket.socket, behaviour: Behaviour, counters: MutableSequence[int], worker: int) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await loop.create_server(lambda: Connection(behaviour, counters, worker), sock=listener, backlog=4096)
    await stopped.wait()
    server.close()


def _run_worker(listener: socket.socket, behaviour: Behaviour, counters: MutableSequence[int], worker: int) -> None:
    try:
        import uvloop

        uvloop.run(_serve(listener, behaviour, counters, worker))
    except ImportError:
        asyncio.run(_serve(listener, behaviour, counters, worker))


def _listener(port: int, shared: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(4096)
    return listener


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description="A fast mock of an OpenAI-compatible endpoint.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the port")
    parser.add_argument("--answer", default="The answer is \\boxed{42}.")
    parser.add_argument("--ignore-n", action="store_true", help="always return one choice")
    options = parser.parse_args()
    behaviour = Behaviour(options.answer, options.latency_ms / 1000, options.ignore_n)
    first = _listener(options.port, shared=options.workers > 1)
    port = first.getsockname()[1]
    listeners = [first, *(_listener(port, shared=True) for _ in range(options.workers - 1))]
    counters = multiprocessing.RawArray("Q", options.workers * _COUNTERS)
    children = []
    for worker, listener in enumerate(listeners[1:], start=1):
        if (child := os.fork()) == 0:
            _run_worker(listener, behaviour, counters, worker)
            os._exit(0)
        children.append(child)
    print(json.dumps({"port": port, "pid": os.getpid()}), flush=True)
    _run_worker(first, behaviour, counters, 0)
    for child in children:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
