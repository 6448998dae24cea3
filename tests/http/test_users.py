# SPDX-License-Identifier: Apache-2.0
"""Whoever speaks HTTP keeps to the rules of the room: one set of tests for all its users, against hostile servers.

Nothing follows a redirect to another host, a reply is bounded, the proxy of the environment is asked, what an endpoint
echoes of our credentials is in no message, and a server that is not there is said so.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import reward_kit
from reward_kit.agent.mcp.client import McpClient
from reward_kit.agent.mcp.contract import Bounds
from reward_kit.agent.mcp.http import HttpServer
from reward_kit.agent.resources import HttpRolloutResource, http_rollout_resource
from reward_kit.config_models import ApiParamsConfig, RemoteRewardConfig, Sampling
from reward_kit.deploy.fireworks.api import FireworksAPI
from reward_kit.deploy.first_call import call_first
from reward_kit.deploy.plan import FirstCall
from reward_kit.generation.batch.rest import Rest
from reward_kit.generation.http.clients import OpenAICompatibleClient
from reward_kit.generation.http.messages import MessagesClient
from reward_kit.generation.http.numbers import NumbersClient
from reward_kit.http import exchange
from reward_kit.http.blocking import ask
from reward_kit.http.retry import Timing
from reward_kit.models import Failure, Message
from reward_kit.remote.line import Line
from reward_kit.remote.sign_in import sign_in_for
from reward_kit.sandbox.sos.client import SosConnection
from reward_kit.sandbox.sos.protocol import CreateAnswer
from reward_kit.serving import google_tokens
from reward_kit.serving.google_tokens import fetch_by_http

KEY = "sk-users-0123456789abcdefghij"
PROMPT = "the prompt that must not leave"
TURNS = [Message(role="user", content=PROMPT)]
NO_WAIT = Timing(sleep=lambda _: asyncio.sleep(0), random=lambda: 0.0)
PARAMS = ApiParamsConfig(max_retries=1, timeout=30.0, max_reply_mb=1)


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Answering:
    """Answers each request with the same bytes, and keeps what was sent."""

    answer: bytes
    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if length := re.search(rb"content-length: (\d+)", head, re.IGNORECASE):
                head += await reader.readexactly(int(length[1]))
            elif b"chunked" in head.lower():
                head += await reader.readuntil(b"\r\n0\r\n\r\n")
            self.heard.append(head)
            writer.write(self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@contextmanager
def answering(*servers: Answering) -> Iterator[None]:
    """Serve until the block ends, in a thread: some users block."""
    started, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        listening = [await asyncio.start_server(server.serve, "127.0.0.1", 0) for server in servers]
        for server, socket in zip(servers, listening, strict=True):
            server.port = socket.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        for socket in listening:
            socket.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def said(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# ── users ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def model(client: Any) -> None:
    try:
        (outcome,) = await client.generate(TURNS, draws=[0], sampling=Sampling(max_tokens=9))
    finally:
        await client.close()
    if isinstance(outcome, Failure):
        raise RuntimeError(outcome.message)


async def chat(base: str, _: Path) -> None:
    await model(OpenAICompatibleClient("m", api_base=base, api_key=KEY, api_params=PARAMS, timing=NO_WAIT))


async def messages(base: str, _: Path) -> None:
    await model(MessagesClient("m", api_base=base, api_key=KEY, api_params=PARAMS, timing=NO_WAIT))


async def numbers(base: str, _: Path) -> None:
    await model(NumbersClient("m", api="embeddings", api_base=base, api_key=KEY, api_params=PARAMS, timing=NO_WAIT))


def rest(base: str) -> Rest:
    return Rest(base, api_key=KEY, model="m", params=PARAMS, timing=NO_WAIT)


async def batch_made(base: str, _: Path) -> None:
    asking = rest(base)
    try:
        await asking.post("/batches", {"prompt": PROMPT})
    finally:
        await asking.close()


async def batch_file(base: str, home: Path) -> None:
    file = home / "requests.jsonl"
    file.write_text(PROMPT)
    asking = rest(base)
    try:
        await asking.send_file("/files", file, "requests.jsonl", {"purpose": "batch"})
    finally:
        await asking.close()


async def batch_answers(base: str, _: Path) -> None:
    asking = rest(base)
    try:
        await asking.receive("/files/1/content", lambda _: None)
    finally:
        await asking.close()


async def reward(base: str, _: Path) -> None:
    settings = RemoteRewardConfig(max_retries=1, max_outage=0.0, max_reply_mb=1)
    line = Line(f"{base}/evaluate", settings, stops_run=False, timing=NO_WAIT)
    try:
        await line.judge(PROMPT.encode())
    finally:
        await line.close()


async def sandbox(base: str, _: Path) -> None:
    connection = SosConnection(base, KEY)
    try:
        await connection.post("/sandboxes", {"setup": PROMPT}, CreateAnswer, deadline=30.0)
    finally:
        await connection.close()


async def world(base: str, _: Path) -> None:
    resource = HttpRolloutResource()
    await resource.setup({"base_url": base, "start_params": {"prompt": PROMPT}, "max_retries": 1})
    resource._timing = NO_WAIT
    try:
        await resource.initialize()
    finally:
        await resource.close()


async def tools(base: str, _: Path) -> None:
    bounds = Bounds(reply_bytes=1 << 20)
    server = HttpServer(f"{base}/mcp", headers={"Authorization": f"Bearer {KEY}"}, bounds=bounds)
    client = McpClient(server.channel())
    try:
        await client.connect(30.0)
    finally:
        await client.close()
        await server.close()


async def fireworks(base: str, _: Path) -> None:
    api = FireworksAPI(KEY, "me", base, timing=NO_WAIT)
    await asyncio.to_thread(api.post, "accounts/me/evaluators", {"code": PROMPT})


async def fireworks_upload(base: str, _: Path) -> None:
    api = FireworksAPI(KEY, "me", base, timing=NO_WAIT)
    await asyncio.to_thread(api.put_signed, f"{base}/signed", PROMPT.encode(), {}, lambda sent, of: None)


async def first_call(base: str, _: Path) -> None:
    action = FirstCall(url=f"{base}/evaluate", sample={"messages": PROMPT}, auth="api-key", patience=0.0)
    await asyncio.to_thread(call_first, action, KEY, lambda command: "")


async def public_keys(base: str, _: Path) -> None:
    await fetch_by_http(f"{base}/certs")


async def blocking(base: str, _: Path) -> None:
    reply = await asyncio.to_thread(ask, "POST", base, PROMPT.encode(), seconds=30.0)
    if reply.status != 200:
        raise RuntimeError(reply.status)


User = Callable[[str, Path], Awaitable[None]]
USERS: dict[str, User] = {
    "chat": chat, "messages": messages, "numbers": numbers, "batch_made": batch_made, "batch_file": batch_file,
    "batch_answers": batch_answers, "reward": reward, "sandbox": sandbox, "world": world, "tools": tools,
    "fireworks": fireworks, "fireworks_upload": fireworks_upload, "first_call": first_call,
    "public_keys": public_keys, "blocking": blocking,
}  # fmt: skip
BOUNDED = [name for name in USERS if name != "batch_answers"]
"""All but those whose replies go to a file as they come."""


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", USERS)
async def test_nobody_follows_a_redirect(name: str, status: int, tmp_path: Path) -> None:
    first, other = Answering(b""), Answering(said(200, b"{}"))
    with answering(first, other):
        first.answer = said(status, b"", f"Location: {other.base}/elsewhere")
        with pytest.raises(Exception, match=r".") as caught:
            await USERS[name](first.base, tmp_path)
    assert first.heard
    assert not other.heard
    assert not isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", BOUNDED)
async def test_a_reply_is_bounded(name: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LARGEST_REPLY", 1 << 20)
    monkeypatch.setattr(http_rollout_resource, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(google_tokens, "_MOST_BYTES", 1 << 20)
    whole = b"x" * (2 << 20)
    body, headers = (gzip.compress(whole, 1), ["Content-Encoding: gzip"]) if packed else (whole, [])
    server = Answering(said(200, body, "Content-Type: application/json", *headers))
    with answering(server), pytest.raises(Exception, match=r"more than|larger than|packed"):
        await USERS[name](server.base, tmp_path)


@pytest.mark.parametrize("name", [name for name in USERS if name not in {"fireworks", "fireworks_upload"}])
async def test_the_proxy_of_the_environment_is_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Answering(said(418, b"{}"))
    with answering(proxy):
        monkeypatch.setenv("http_proxy", proxy.base)
        with pytest.raises(Exception, match=r"."):
            await USERS[name]("http://somewhere.invalid", tmp_path)
    assert proxy.heard and proxy.heard[0].split()[1].startswith(b"http://somewhere.invalid")


WITH_KEY = [name for name in USERS if name not in {"reward", "world", "public_keys", "blocking", "fireworks_upload"}]


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("name", WITH_KEY)
async def test_an_echoed_key_is_in_no_message(name: str, status: int, tmp_path: Path) -> None:
    server = Answering(said(status, f'{{"error": {{"message": "you sent {KEY}"}}}}'.encode()))
    with answering(server), pytest.raises(Exception, match=r".") as caught:
        await USERS[name](server.base, tmp_path)
    assert any(KEY.encode() in heard for heard in server.heard)
    assert KEY not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize("name", USERS)
async def test_a_server_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    server = Answering(b"")
    with answering(server):
        pass
    with pytest.raises(Exception, match=rf"127\.0\.0\.1.*{server.port}"):
        await USERS[name](server.base, tmp_path)


REPEATED = {"chat", "messages", "numbers", "batch_made", "batch_file", "reward", "fireworks", "fireworks_upload"}
"""What may be sent twice. A step of a world, a command, or the submission of a batch may not."""


@pytest.mark.parametrize("name", USERS)
async def test_only_what_may_be_sent_twice_is_sent_again(name: str, tmp_path: Path) -> None:
    server = Answering(said(500, b"{}"))
    with answering(server), pytest.raises(Exception, match=r"."):
        await USERS[name](server.base, tmp_path)
    assert (len(server.heard) > 1) is (name in REPEATED)


async def test_the_metadata_server_is_asked_past_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, metadata = Answering(said(200, b"wrong")), Answering(said(302, b"", "Location: http://127.0.0.1:9/"))
    with answering(proxy, metadata):
        monkeypatch.setenv("http_proxy", proxy.base)
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{metadata.port}")
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
        signing = sign_in_for("https://reward.example/evaluate", RemoteRewardConfig(sign_in="google"))
        with pytest.raises(Exception, match="answered 302"):
            await signing.headers("POST", "https://reward.example/evaluate", b"")
    assert metadata.heard and not proxy.heard


# ── the source ───────────────────────────────────────────────────────────────────────────────────────────────────────

PACKAGE = Path(reward_kit.__file__).parent
OPENS = re.compile(
    r"ClientSession\(|\burlopen\(|\bbuild_opener\(|HTTPS?Connection\(|create_connection\(|\bopen_connection\("
    r"|^\s*(?:import|from) (?:urllib\.request|http\.client|requests|httpx|httpx2|urllib3|aiohttp)\b(?! import web\b)"
    r"|import [\w., ]*\burllib\.request\b|aiohttp\.request\(",
    re.MULTILINE,
)
ELSEWHERE = {
    "deploy/fireworks/remote_shim.py": "it travels alone: nothing of reward-kit is where it runs",
    "deploy/dockerfile.py": "an image's health check, which runs without the package's dependencies",
    "deploy/mcp_image.py": "the same",
    "sandbox/containers/engine.py": "streams over the socket of a container engine: once upgraded, they are no HTTP",
    "execution/ray_engine/cluster.py": "a knock at Ray's port, which does not speak HTTP",
    "testing.py": "what a user's test may write, as an example",
}
SERVERS = {"generation/mock_server.py", "sandbox/sos/server.py", "agent/mcp/server.py"}
"""These are asked, and ask nobody."""


def test_only_the_room_opens_connections() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): opened
        for path in PACKAGE.rglob("*.py")
        if (opened := sorted({match[0].strip() for match in OPENS.finditer(path.read_text(encoding="utf-8"))}))
    }
    outside = {name: opened for name, opened in found.items() if not name.startswith("http/") and name not in SERVERS}
    assert outside.keys() == ELSEWHERE.keys(), outside
