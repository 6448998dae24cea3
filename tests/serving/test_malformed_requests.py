# SPDX-License-Identifier: Apache-2.0
"""Requests that nobody should send: refused in bounded time and memory, and the next one works."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.serving.bodies import Bodies, brackets_of
from reward_kit.serving.refusals import Refusal
from reward_kit.serving.settings import LimitSettings
from tests.serving.rewards import equal
from tests.serving.served import Server, asked, raw, read_response, serving

MEGABYTE = 1 << 20
GOOD = json.dumps(asked("a", "a")).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    limits = {"receive_seconds": 2.0, "send_seconds": 2.0, "body_mb": 4.0, "batch": 100}
    with serving(equal, limits=limits) as found:
        yield found


def in_messages(value: object) -> bytes:
    return json.dumps({"messages": value}).encode()


BODIES = {
    "no body": b"",
    "not JSON": b"{messages: nobody}",
    "half of it": GOOD[:-5],
    "two of them": GOOD + GOOD,
    "NaN": b'{"messages": [{"role": "user", "content": "a"}], "ground_truth": NaN}',
    "infinity": b'{"messages": [{"role": "user", "content": "a"}], "ground_truth": 1e999}',
    "not UTF-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
    "half a character": b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    "nested 10,000 deep": b'{"ground_truth": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "nested 100 deep": b'{"ground_truth": ' + b"[" * 100 + b"]" * 100 + b"}",
    "nested behind texts": b'["]",' * 200 + b"1" + b',"["]' * 200,
    "a million lists": b'{"ground_truth": [' + b"[]," * 1_000_000 + b"[]]}",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "no messages": b'{"ground_truth": "a"}',
    "messages that are a text": in_messages("hello"),
    "no message at all": in_messages([]),
    "a message that is a text": in_messages(["hello"]),
    "no role": in_messages([{"content": "a"}]),
    "a role that is a number": in_messages([{"role": 1, "content": "a"}]),
    "content that is a number": in_messages([{"role": "user", "content": 1}]),
    "tool calls that are none": in_messages([{"role": "assistant", "content": "a", "tool_calls": [{"x": 1}]}]),
    "kwargs that are a list": b'{"messages": [{"role": "user", "content": "a"}], "kwargs": [1]}',
    "a sample_id that is a list": b'{"messages": [{"role": "user", "content": "a"}], "sample_id": [1]}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_of_another_kind_is_refused(server: Server, body: bytes) -> None:
    found = server.post("/evaluate", body)

    assert 400 <= found.status < 500
    assert found.json["detail"].endswith(".")
    assert len(found.body) < 500
    assert server.is_fine()


BATCHES = {
    "no items": b'{"messages": []}',
    "items that are an object": b'{"items": {}}',
    "no item": b'{"items": []}',
    "an item that is a text": b'{"items": ["a"]}',
    "one bad item": json.dumps({"items": [asked("a", "a"), {"messages": 1}]}).encode(),
    "too many items": json.dumps({"items": [asked("a", "a")] * 101}).encode(),
}


@pytest.mark.parametrize("body", BATCHES.values(), ids=BATCHES.keys())
def test_a_batch_of_another_kind_is_refused(server: Server, body: bytes) -> None:
    found = server.post("/evaluate/batch", body)

    assert found.status in {413, 422}
    assert server.is_fine()


HEADS = {
    "no HTTP": (b"hello\r\n\r\n", b"400"),
    "an unknown method": (b"FETCH /evaluate HTTP/1.1\r\nhost: localhost\r\n\r\n", b"400"),
    "a wrong method": (b"DELETE /evaluate HTTP/1.1\r\nhost: localhost\r\n\r\n", b"405"),
    "a GET": (b"GET /evaluate/batch HTTP/1.1\r\nhost: localhost\r\n\r\n", b"405"),
    "a wrong path": (raw(GOOD, "/nowhere"), b"404"),
    "a path that leaves": (raw(GOOD, "/../../etc/passwd"), b"404"),
    "another reward": (raw(GOOD, "/rewards/other/evaluate"), b"404"),
    "bytes in the path": (b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n", b"4"),
    "two lengths": (raw(GOOD, "/evaluate", "POST", "content-length: 3"), b"400"),
    "a length that is no number": (
        b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ncontent-length: many\r\n\r\n",
        b"400",
    ),
    "a length below zero": (b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n", b"400"),
    "length and chunks": (raw(GOOD, "/evaluate", "POST", "transfer-encoding: chunked"), b"400"),
    "a length that is too small": (raw(GOOD, "/evaluate").replace(b"length: 1", b"length: "), b"4"),
    "a bad chunk": (b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", b"400"),
    "compressed": (raw(GOOD, "/evaluate", "POST", "content-encoding: gzip"), b"415"),
    "too large by what it says": (
        b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n",
        b"413",
    ),
    "large headers": (raw(GOOD, "/evaluate", "POST", "x: " + "y" * 300_000), b"4"),
    "many headers": (raw(GOOD, "/evaluate", "POST", *[f"x{n}: {'y' * 100}" for n in range(5_000)]), b"4"),
    "from a web page": (raw(GOOD, "/evaluate", "POST", "origin: http://evil.example"), b"403"),
    "an upgrade to nothing": (raw(GOOD, "/evaluate", "POST", "connection: upgrade", "upgrade: websocket"), b"4"),
}


@pytest.mark.parametrize(("data", "status"), HEADS.values(), ids=HEADS.keys())
def test_a_head_of_another_kind_is_refused(server: Server, data: bytes, status: bytes) -> None:
    found = server.say(data)

    assert found.startswith(b"HTTP/1.1 " + status), found[:200]
    assert server.is_fine()


TWICE = {
    "at the top": b'{"messages": [], "ground_truth": "4", "ground_truth": "5"}',
    "nested": b'{"messages": [{"role": "user", "content": "a", "content": "b"}]}',
    "in kwargs": b'{"messages": [], "kwargs": {"a": {"b": 1, "b": 1}}}',
    "escaped": b'{"messages": [], "a": 1, "\\u0061": 2}',
    "beside an escaped quote": b'{"messages": [], "x": "\\u0022", "a": "", "a": ""}',
    "beside a wide integer": b'{"messages": [], "x": 1180591620717411303424, "a": 1, "a": 1}',
}


@pytest.mark.parametrize("body", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("path", ["/evaluate", "/evaluate/batch"])
def test_a_key_that_stands_twice_is_refused(server: Server, body: bytes, path: str) -> None:
    found = server.post(path, body if path == "/evaluate" else b'{"items": [' + body + b"]}")
    assert found.status == 400
    assert "stands twice in one object. " in found.json["detail"]


def test_a_hundred_megabytes_are_not_read(server: Server) -> None:
    """Not even a small part of them, in one piece or in chunks, however they are announced."""
    before = memory()
    for head in (b"content-length: 100000000", b"transfer-encoding: chunked"):
        with server.connect() as line:
            line.sendall(b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\n" + head + b"\r\n\r\n")
            answer = flood(line, 100 * MEGABYTE, chunked=b"chunked" in head)
        assert answer.startswith(b"HTTP/1.1 413"), answer[:100]
    assert memory() - before < 40 * MEGABYTE
    assert server.is_fine()


def flood(line: socket.socket, size: int, *, chunked: bool) -> bytes:
    """Send so much, or until the other side has had enough; then what it says."""
    block = b"[" * MEGABYTE
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(read_response(line)))
    reader.start()
    try:
        for _ in range(size // MEGABYTE):
            line.sendall(b"%x\r\n%s\r\n" % (len(block), block) if chunked else block)
    except OSError:
        pass
    reader.join()
    return found[0]


def memory() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_bodies_that_arrive_together_are_bounded() -> None:
    bodies = Bodies(LimitSettings(body_mb=1.0, bodies_mb=2.0))
    bodies.take(2 * MEGABYTE)

    with pytest.raises(Refusal) as refused:
        bodies.take(1)

    assert refused.value.status == 503


SLOW = {
    "nothing at all": b"",
    "half a head": b"POST /evaluate HTTP/1.1\r\nhost",
    "half a body": raw(GOOD)[:-10],
    "a length that is too large": raw(GOOD).replace(b"content-length: ", b"content-length: 1"),
    "an endless chunk": b"POST /evaluate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
}


@pytest.mark.parametrize("data", SLOW.values(), ids=SLOW.keys())
def test_a_caller_that_stops_is_cut_off(server: Server, data: bytes) -> None:
    found = server.say(data)

    assert found.startswith(b"HTTP/1.1 408"), found[:100]
    assert server.is_fine()


def test_a_caller_that_drips_is_cut_off(server: Server) -> None:
    with server.connect() as line:
        line.settimeout(0.2)
        answer = b""
        began = time.monotonic()
        for byte in raw(GOOD) * 100:
            try:
                line.sendall(bytes([byte]))
                answer = line.recv(1000)
                break
            except TimeoutError:
                continue
            except OSError:
                break
        assert not answer or answer.startswith(b"HTTP/1.1 408")
        assert time.monotonic() - began < 60
    assert server.is_fine()


def test_an_idle_connection_that_drips_line_ends_is_cut_off(server: Server) -> None:
    with server.connect() as line:
        line.sendall(raw(GOOD))
        assert b"200 OK" in read_response(line)
        ends = time.monotonic() + 60
        with pytest.raises(OSError):
            while time.monotonic() < ends:
                line.sendall(b"\r\n")
                time.sleep(0.2)
    assert server.is_fine()


def test_a_caller_that_does_not_read_is_cut_off() -> None:
    long = "x" * 3_000_000

    async def wordy(messages: list[object], **kwargs: object) -> dict[str, object]:
        return {"score": 1.0, "reason": long}

    with serving(wordy, limits={"send_seconds": 2.0}) as server, server.connect() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(raw(GOOD) * 8)
        ends = time.monotonic() + 60
        while not server.metric('reward_kit_refused_total{kind="unread"}') and time.monotonic() < ends:
            time.sleep(0.05)
        assert server.metric('reward_kit_refused_total{kind="unread"}') == 1


def test_a_caller_may_close_its_half(server: Server) -> None:
    found = server.say(raw(json.dumps(asked("wait 0.3", "wait 0.3")).encode()), half_close=True)

    assert found.startswith(b"HTTP/1.1 200")
    assert found.endswith(b'"error":null}')


def test_a_caller_that_leaves_in_the_middle_costs_nothing(server: Server) -> None:
    for end in range(0, len(raw(GOOD)), 7):
        with server.connect() as line:
            line.sendall(raw(GOOD)[:end])
    assert server.is_fine()
    deadline = time.monotonic() + 60
    while server.metric("reward_kit_bodies_held_bytes") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.metric("reward_kit_bodies_held_bytes") == 0


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    bodies = [json.dumps(asked(str(n), str(n % 2))).encode() for n in range(20)]
    with server.connect() as line:
        line.sendall(b"".join(map(raw, bodies)))
        data = b""
        while data.count(b"HTTP/1.1 200") < 20 or not data.endswith(b"}"):
            data += line.recv(65536)
    scores = [part[:3] for part in data.split(b'"score":')[1:]]
    assert scores == [b"1.0" if n in {0, 1} else b"0.0" for n in range(20)]


def test_a_good_request_before_a_bad_one_is_safe(server: Server) -> None:
    found = server.say(raw(GOOD) + b"rubbish\r\n\r\n")

    assert found.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400"))
    assert server.is_fine()


def test_too_many_connections_are_refused() -> None:
    with serving(equal, limits={"connections": 3}) as server:
        lines = [server.connect() for _ in range(3)]
        for line in lines:
            line.sendall(raw(GOOD))
            assert b"200 OK" in read_response(line)
        assert server.say(raw(GOOD)).startswith(b"HTTP/1.1 503")
        for line in lines:
            line.close()
        ends = time.monotonic() + 60
        while not (answer := server.say(raw(GOOD))).startswith(b"HTTP/1.1 200"):
            assert time.monotonic() < ends, answer


# ── brackets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((depth_of(each) for each in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth_of(each) for each in value), default=0)
    return 0


texts = st.text(alphabet='[]{}"\\\n,: ab', max_size=8)
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=40,
)


@given(values, st.booleans())
def test_the_brackets_of_a_text_are_those_outside_of_its_strings(value: object, spaced: bool) -> None:
    text = json.dumps(value, indent=1 if spaced else None).encode()

    brackets = brackets_of(text)

    assert brackets.count(b"[") == brackets.count(b"]") == count_of(value)
    peeled = 0
    while brackets:
        brackets = brackets.replace(b"[]", b"")
        peeled += 1
    assert peeled == depth_of(value)


def count_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count_of, value.values()))
    return 1 + sum(map(count_of, value)) if isinstance(value, list) else 0


@given(values)
def test_nesting_is_refused_exactly_where_it_is_too_deep(value: object) -> None:
    bodies = Bodies(LimitSettings(depth=4))
    text = json.dumps(value).encode()

    if depth_of(value) > 4:
        with pytest.raises(Refusal, match="nested"):
            bodies.json(text)
    else:
        bodies.json(text)
