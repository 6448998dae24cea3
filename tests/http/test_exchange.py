# SPDX-License-Identifier: Apache-2.0
"""Requests over raw connections: every way an HTTP answer may come, and what must never be taken for one."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest

from reward_kit.errors import ConfigError
from reward_kit.http.exchange import Exchange, SessionExchange
from reward_kit.http.raw_exchange import RawExchange
from reward_kit.http.transport import Transport

OK = b"HTTP/1.1 200 OK\r\n"
LATER = 0.01


@dataclass
class Server:
    """Plays one script a request, in order: pieces of bytes with a pause between them; None ends the connection."""

    scripts: list[Sequence[bytes | None]]
    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length:"))
                self.bodies.append(await reader.readexactly(int(length.split(":")[1])))
                for piece in self.scripts.pop(0):
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(LATER)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


Kind: TypeAlias = type[RawExchange] | type[SessionExchange]


@pytest.fixture(params=[RawExchange, SessionExchange])
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@asynccontextmanager
async def exchanging(
    kind: Kind, *scripts: Sequence[bytes | None], headers: Mapping[str, str] = {"Authorization": "Bearer k"}
) -> AsyncIterator[tuple[Exchange, Server]]:
    server = Server(list(scripts))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    exchange: Exchange = kind(f"http://127.0.0.1:{server.port}/v1/chat?a=b", headers=headers)
    try:
        yield exchange, server
    finally:
        await exchange.close()
        listening.close()
        await listening.wait_closed()


async def until_spoiled(exchange: Exchange) -> None:
    """Wait until no idle connection can be used again: each was closed, or holds something unasked for."""
    connector: Any = exchange._connector if isinstance(exchange, RawExchange) else vars(exchange)["_session"].connector
    while any(
        protocol.is_connected() and not protocol.should_close
        for idle in connector._conns.values()
        for protocol, *_ in idle
    ):
        await asyncio.sleep(LATER)


def whole(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"%bContent-Length: %d\r\n%b\r\n%b" % (OK, len(body), lines, body)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "script",
    [
        [whole(b"hello world")],
        [whole(b"hello world")[:30], whole(b"hello world")[30:]],
        [bytes([byte]) for byte in whole(b"hello world")],
        [CHUNKED],
        [CHUNKED[:60], CHUNKED[60:]],
        [whole(gzip.compress(b"hello world"), b"Content-Encoding: gzip")],
        [b"HTTP/1.1 100 Continue\r\n\r\n", whole(b"hello world")],
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + whole(b"hello world")],
        [OK + b"\r\nhello world", None],
        [b"HTTP/1.0 200 OK\r\n\r\nhello", b" world", None],
    ],
)
async def test_a_whole_answer_is_read_however_it_comes(kind: Kind, script: Sequence[bytes | None]) -> None:
    async with exchanging(kind, script) as (exchange, server):
        reply = await exchange.post(b"body")
    assert (reply.status, reply.data) == (200, b"hello world")
    assert server.bodies == [b"body"]


@pytest.mark.parametrize(
    "script",
    [
        [None],
        [b"HTTP/1.1 200", None],
        [whole(b"hello world")[:-3], None],
        [CHUNKED[:-5], None],
        [b"SSH-2.0-OpenSSH_9.2\r\n", None],
        [b"\x16\x03\x01\x02\x00\x01", None],
        [OK + b"Content-Length: x\r\n\r\n", None],
    ],
)
async def test_what_is_no_whole_answer_is_a_fault_and_the_next_request_is_answered(
    kind: Kind,
    script: Sequence[bytes | None],
) -> None:
    async with exchanging(kind, script, [whole(b"yes")]) as (exchange, server):
        with pytest.raises(exchange.faults):
            await exchange.post(b"1")
        assert (await exchange.post(b"2")).data == b"yes"
    assert server.connections == 2


async def test_a_connection_is_kept_and_the_head_says_everything_once(kind: Kind) -> None:
    async with exchanging(kind, [whole(b"1")], [whole(b"22", b"Retry-After: 3")]) as (exchange, server):
        await exchange.post(b"first")
        reply = await exchange.post(b"the second")
    assert server.connections == 1
    assert reply.headers["retry-after"] == "3"
    first, second = ([line.lower() for line in head.split("\r\n")] for head in server.heads)
    assert first[0] == "post /v1/chat?a=b http/1.1"
    assert f"host: 127.0.0.1:{server.port}" in first
    assert "authorization: bearer k" in first
    assert [line for line in first if line.startswith("content-length")] == ["content-length: 5"]
    assert [line for line in second if line.startswith("content-length")] == ["content-length: 10"]
    assert len({line.split(":")[0] for line in first}) == len(first) - 1  # it ends with two empty lines


async def test_a_length_that_somebody_set_is_not_sent_beside_the_true_one(kind: Kind) -> None:
    async with exchanging(kind, [whole(b"1")], headers={"content-length": "7"}) as (exchange, server):
        await exchange.post(b"four")
    assert server.heads[0].lower().count("content-length") == 1
    assert server.bodies == [b"four"]


@pytest.mark.parametrize(
    "script",
    [[whole(b"1", b"Connection: close")], [whole(b"1") + whole(b"unasked")], [whole(b"1"), whole(b"unasked")]],
)
async def test_a_connection_that_is_given_up_or_holds_something_unasked_for_is_not_used_again(
    kind: Kind,
    script: Sequence[bytes | None],
) -> None:
    async with exchanging(kind, script, [whole(b"2")]) as (exchange, server):
        assert (await exchange.post(b"")).data == b"1"
        await until_spoiled(exchange)
        assert (await exchange.post(b"")).data == b"2"
    assert server.connections == 2


async def test_the_answer_to_a_request_that_was_given_up_is_never_taken_for_the_next_ones(kind: Kind) -> None:
    async with exchanging(kind, [whole(b"late")[:20], whole(b"late")[20:]], [whole(b"mine")]) as (exchange, server):
        given_up = asyncio.create_task(exchange.post(b"1"))
        while not server.bodies:
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        assert (await exchange.post(b"2")).data == b"mine"


async def test_an_idle_connection_that_the_server_closed_is_replaced(kind: Kind) -> None:
    async with exchanging(kind, [whole(b"1"), None], [whole(b"2")]) as (exchange, server):
        await exchange.post(b"")
        await until_spoiled(exchange)
        assert (await exchange.post(b"")).data == b"2"
    assert server.connections == 2


async def test_a_proxy_is_asked_for_the_whole_address_with_its_own_credentials(kind: Kind) -> None:
    server = Server([[whole(b"through")], [whole(b"again")]])
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    proxy = f"http://user:secret@127.0.0.1:{port}"
    exchange = kind("http://model.invalid/v1/chat", headers={}, proxy=proxy)
    assert [(await exchange.post(b"")).data for _ in range(2)] == [b"through", b"again"]
    await exchange.close()
    listening.close()
    for head in server.heads:
        assert head.startswith("POST http://model.invalid/v1/chat HTTP/1.1\r\nHost: model.invalid\r\n")
        assert head.count("Proxy-Authorization: Basic ") == 1


@pytest.mark.parametrize("header", [("X-A", "b\r\nX-Evil: 1"), ("X\nA", "b"), ("X-A", "b\0")])
def test_a_header_that_is_more_than_one_line_is_refused(header: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="line break"):
        Transport("http://127.0.0.1/v1", api_key=None, headers=dict([header]), timeout=1.0)


async def test_interim_replies_without_end_are_a_fault() -> None:
    """Only of the exchange by hand: a session reads on for ever."""
    script = [b"HTTP/1.1 100 Continue\r\n\r\n" * 200]
    async with exchanging(RawExchange, script) as (exchange, _):
        with pytest.raises(exchange.faults, match="interim"):
            await exchange.post(b"")
