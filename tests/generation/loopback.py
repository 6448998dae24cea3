# SPDX-License-Identifier: Apache-2.0
"""A chat-completions endpoint on this machine that does what a test tells it to, misbehaviour included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from reward_kit.config_models import ApiParamsConfig, Sampling
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.http.retry import Timing
from reward_kit.models import Completion, Failure, Message

Misbehave = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Says:
    """A reply: a status, headers, and a body (bytes as they are, anything else as JSON)."""

    status: int
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)
        headers = {"Content-Type": "application/json", **self.headers, "Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Said\r\n{lines}\r\n".encode() + body


Reaction = Says | Misbehave


def answer(*texts: str, model: str = "m", **usage: Any) -> Says:
    """An ordinary answer with one choice a text."""
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for i, text in enumerate(texts or ("yes",))
    ]
    counts = usage or {"prompt_tokens": 10, "completion_tokens": 2 * len(choices)}
    return Says(200, {"model": model, "choices": choices, "usage": counts})


def says_message(message: Any, finish_reason: str | None = "stop") -> Says:
    """An answer whose only choice holds `message`."""
    return Says(200, {"choices": [{"message": message, "finish_reason": finish_reason}]})


def complains(status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> Says:
    """An OpenAI-shaped error."""
    return Says(status, {"error": {"message": message, **error}}, headers or {})


@dataclass
class Loopback:
    """What the endpoint is told to do, and what it saw."""

    react: Callable[[dict[str, Any], int], Reaction]
    port: int = 0
    models: list[dict[str, Any]] | None = None
    """What it lists at `/models`; None: it has no such list."""
    listed: int = 0
    """How often it was asked for that list."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    at_once: int = 0

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                if head.startswith("GET "):
                    self.listed += 1
                    said = complains(404) if self.models is None else Says(200, {"data": self.models})
                    await self._reply(said, writer)
                    continue
                length = next(
                    int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")
                )
                body = orjson.loads(await reader.readexactly(length))
                self.heads.append(head)
                self.requests.append(body)
                await self._reply(self.react(body, len(self.requests)), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self, reaction: Reaction, writer: asyncio.StreamWriter) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if isinstance(reaction, Says):
                writer.write(reaction.encoded())
                await writer.drain()
            else:
                await reaction(writer)
        finally:
            self.at_once -= 1


@asynccontextmanager
async def loopback(react: Callable[[dict[str, Any], int], Reaction], *, port: int = 0) -> AsyncIterator[Loopback]:
    """Serve until the block ends. `react` gets a request's body and its number, counted from 1."""
    endpoint = Loopback(react)
    handlers: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.ensure_future(endpoint.serve(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    endpoint.port = server.sockets[0].getsockname()[1]
    try:
        yield endpoint
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


def scripted(*reactions: Reaction) -> Callable[[dict[str, Any], int], Reaction]:
    """React to the first request with the first, and so on; the last one stands for all that follow."""
    return lambda body, number: reactions[min(number, len(reactions)) - 1]


class FakeTime:
    """Time that passes only by sleeping, and a die that always shows its highest."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def timing(self) -> Timing:
        return Timing(clock=lambda: self.now, sleep=self.sleep, random=lambda: 1.0)


@asynccontextmanager
async def client_of(
    api_base: str, *, time: FakeTime | None = None, api_key: str | None = None, n_mode: Any = "auto", **params: Any
) -> AsyncIterator[OpenAICompatibleClient]:
    """A client that never really waits."""
    client = OpenAICompatibleClient(
        "m",
        api_base=api_base,
        api_key=api_key,
        api_params=ApiParamsConfig(**params),
        n_mode=n_mode,
        timing=(time or FakeTime()).timing(),
    )
    try:
        yield client
    finally:
        await client.close()


async def ask(
    client: OpenAICompatibleClient,
    *draws: int,
    sample_id: str = "s",
    tools: list[dict[str, Any]] | None = None,
    **sampling: Any,
) -> list[Completion | Failure]:
    """Ask a question for the given draws (the first one, where none is named)."""
    question = [Message(role="user", content="Is it?")]
    return await client.generate(
        question, draws=draws or (0,), sampling=Sampling(**sampling), tools=tools, sample_id=sample_id
    )


def texts(entries: list[Completion | Failure]) -> list[str]:
    """What was answered, where everything was."""
    assert all(isinstance(entry, Completion) for entry in entries), entries
    return [entry.message.text for entry in entries if isinstance(entry, Completion)]


def failure(entries: list[Completion | Failure]) -> Failure:
    """The failure, where there is exactly one entry and it failed."""
    (entry,) = entries
    assert isinstance(entry, Failure), entry
    return entry
