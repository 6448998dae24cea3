# SPDX-License-Identifier: Apache-2.0
"""Answers without end, and small ones that unpack to large ones: each is one failure, and costs little memory."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable

import pytest

from reward_kit.errors import SandboxError
from reward_kit.models import Completion, Failure
from reward_kit.sandbox.sos.client import SosConnection
from tests.generation.loopback import Misbehave, Says, answer, ask, client_of, loopback, scripted

pytestmark = pytest.mark.usefixtures("each_exchange")

LIMIT_MB = 2
BOMB = bytes(64 << 20)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "gzip in two members": ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without its head": ("deflate", raw_deflate),
}


def endless(start: bytes, piece: bytes) -> Misbehave:
    """Sends `start`, and then `piece` for ever."""

    async def misbehave(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()

    return misbehave


CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"
ENDLESS: dict[str, Misbehave] = {
    "chunks": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK),
    "a body without a length": endless(HEAD + b"Connection: close\r\n\r\n", b" " * 0x10000),
    "a huge length": endless(HEAD + b"Content-Length: 99999999999\r\n\r\n", b" " * 0x10000),
    "events": endless(HEAD + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n", b"data: {}\n\n" * 999),
    "an error": endless(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n", b" " * 0x10000),
}
OTHERWISE: dict[str, Misbehave] = {
    "headers": endless(HEAD, b"X-More: and more\r\n" * 999),
    "one header": endless(HEAD + b"X-Long: ", b"x" * 0x10000),
    "a packing nobody asked for": endless(
        HEAD + b"Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n0\r\n\r\n"
    ),
}


async def bounded(work: Callable[[], Awaitable[object]]) -> object:
    """What `work` comes to; it may not take much memory."""
    tracemalloc.start()
    try:
        return await work()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 << 20, f"{peak >> 20} MB"


@pytest.mark.parametrize("packed", PACKED)
async def test_a_packed_answer_is_read_and_a_bomb_is_not(packed: str) -> None:
    encoding, pack = PACKED[packed]
    right = answer("yes").encoded().split(b"\r\n\r\n", 1)[1]
    replies = [Says(200, pack(body), {"Content-Encoding": encoding}) for body in (right, BOMB)]
    async with (
        loopback(scripted(*replies)) as endpoint,
        client_of(endpoint.api_base, max_reply_mb=LIMIT_MB) as client,
    ):
        (read,) = await ask(client)
        assert isinstance(read, Completion) and read.message.content == "yes"
        failed = await bounded(lambda: ask(client))
    assert isinstance(failed, list) and isinstance(failed[0], Failure)
    assert (failed[0].type, failed[0].retryable) == ("ReplyTooLargeError", False)
    assert len(endpoint.requests) == 2, "it was asked for again"


@pytest.mark.parametrize("what", ENDLESS)
async def test_an_answer_without_end_is_one_failure(what: str) -> None:
    async with (
        loopback(scripted(ENDLESS[what])) as endpoint,
        client_of(endpoint.api_base, max_reply_mb=LIMIT_MB) as client,
    ):
        failed = await bounded(lambda: ask(client))
    assert isinstance(failed, list) and isinstance(failed[0], Failure)
    assert (failed[0].type, failed[0].retryable) == ("ReplyTooLargeError", False)


@pytest.mark.parametrize("what", OTHERWISE)
async def test_what_is_no_answer_at_all_is_a_failure_too(what: str) -> None:
    async with (
        loopback(scripted(OTHERWISE[what])) as endpoint,
        client_of(endpoint.api_base, max_retries=0) as client,
    ):
        failed = await bounded(lambda: ask(client))
    assert isinstance(failed, list) and isinstance(failed[0], Failure)
    assert failed[0].type == "ProviderError"


async def test_a_sandbox_server_without_end_is_given_up() -> None:
    async with loopback(scripted(ENDLESS["chunks"])) as endpoint:
        connection = SosConnection(f"http://127.0.0.1:{endpoint.port}", None)
        try:
            with pytest.raises(SandboxError, match="more than 64 MB"):
                await connection.request("POST", "/start", {}, deadline=60)
        finally:
            await connection.close()
