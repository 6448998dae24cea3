# SPDX-License-Identifier: Apache-2.0
"""A reward behind the server, beside a bare Starlette handler under uvicorn that parses and answers the same JSON.

Both servers run all the time, each in a process of its own with one event loop, and take turns at being called over 64
kept connections. Rates are requests per second of the server's processor time, which is what a server on a machine of
its own would answer, and what a busy machine does not change. Ours runs as `reward-kit serve` starts it: with its log,
its figures and its limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

from benchmarks.report import Report, Row
from benchmarks.served_reward import trivial_sync
from reward_kit.utils.event_loop import run_sync

__all__ = ["main"]

CONNECTIONS = 64
BATCH = 64
GOAL_RATE = 0.5
GOAL_P99 = 1.5
GOAL_START = 1.5
GOAL_MICROSECONDS = 120.0
GOAL_MEMORY = 1.05
ROOT = Path(__file__).resolve().parent.parent

QUESTION = {
    "messages": [
        {"role": "user", "content": "Natalia sold clips to 48 of her friends in April, and then half as many in May."},
        {"role": "assistant", "content": "In May she sold 24 clips, so altogether 48 + 24 = 72. The answer is 72."},
    ],
    "ground_truth": "72",
}


BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

def judged(item):
    score = float(item["messages"][-1]["content"][-3:-1] == item["ground_truth"])
    return {"score": score, "is_score_valid": True, "reason": "compared", "metrics": {}, "step_outputs": None,
            "error": None}

async def one(request):
    return JSONResponse(judged(await request.json()))

async def many(request):
    return JSONResponse({"results": [judged(item) for item in (await request.json())["items"]]})

app = Starlette(routes=[Route("/evaluate", one, methods=["POST"]), Route("/evaluate/batch", many, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
"""
"""The baseline, as a program."""


def main(*, quick: bool = False) -> Report:
    """Measure rates, the slowest of a hundred, workers, memory and start-up."""
    rounds, size = (1, 128) if quick else (7, 4000)
    with _servers() as (bare, ours):
        rows = [
            *_rates(bare, ours, rounds, size),
            _batches(bare, ours, rounds, max(2, size // 64)),
            _in_workers(ours, rounds, max(2, size // 64)),
            _memory(ours, 256 if quick else 200_000),
        ]
    rows.append(_start_up(1 if quick else 7))
    return Report("serving", f"a trivial reward over HTTP, {CONNECTIONS} connections, one server process", rows)


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Server(NamedTuple):
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int

    def seconds(self) -> float:
        """Processor time so far, of the process and of those it started."""
        return sum(map(_seconds_of, (self.process.pid, *_children(self.process.pid))))

    def memory(self) -> int:
        """Bytes that the process itself has in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def _seconds_of(pid: int) -> float:
    """By the scheduler's own count of nanoseconds, which is finer than clock ticks."""
    try:
        return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except OSError:
        return 0.0


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _ours_command(port: int, *rewards: str) -> list[str]:
    program = "from reward_kit.cli import main; main()"
    return [sys.executable, "-c", program, "serve", *rewards, "--port", str(port), "--workers", "2"]


def _bare_command(port: int) -> list[str]:
    return [sys.executable, "-c", BARE, str(port)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _server(command: Callable[[int], list[str]]) -> Iterator[Server]:
    port = _free_port()
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=log, cwd=ROOT)
        try:
            _first_verdict(port)
            yield Server(process, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextlib.contextmanager
def _servers() -> Iterator[tuple[Server, Server]]:
    rewards = ("benchmarks.served_reward:trivial", "benchmarks.served_reward:trivial_sync")
    with _server(_bare_command) as bare, _server(lambda port: _ours_command(port, *rewards)) as ours:
        yield bare, ours


def _first_verdict(port: int, limit: float = 120.0) -> None:
    """Ask until there is an answer."""
    request = _request(port, "/evaluate", QUESTION)
    ends = time.monotonic() + limit
    while time.monotonic() < ends:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as line:
            line.settimeout(60)
            line.sendall(request)
            if line.recv(65536).startswith(b"HTTP/1.1 200"):
                return
        time.sleep(0.005)
    raise SystemExit(f"The server at port {port} did not answer.")


# ── callers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Caller(asyncio.Protocol):
    """One kept connection: sends the next request as soon as an answer is there."""

    def __init__(self, request: bytes, times: int, done: Callable[[list[float]], None]) -> None:
        self._request = request
        self._left = times
        self._done = done
        self._buffer = bytearray()
        self._sent = 0.0
        self._latencies: list[float] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._ask()

    def _ask(self) -> None:
        if not self._left:
            self._transport.close()
            self._done(self._latencies)
            return
        self._left -= 1
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:") + len(b"content-length:")
        if len(rest) < int(head[at:].partition(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"A server answered {bytes(head[:200])!r}.")
        self._latencies.append(time.perf_counter() - self._sent)
        self._buffer.clear()
        self._ask()


def _request(port: int, path: str, body: Any) -> bytes:
    data = orjson.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\naccept: */*\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


async def _call(port: int, path: str, body: Any, times: int, connections: int) -> list[float]:
    """How long each request took; so many at a time."""
    loop = asyncio.get_running_loop()
    request = _request(port, path, body)
    share = max(1, times // connections)
    waiting = [loop.create_future() for _ in range(connections)]
    for future in waiting:
        await loop.create_connection(lambda f=future: Caller(request, share, f.set_result), "127.0.0.1", port)  # type: ignore[misc]
    return [each for latencies in await asyncio.gather(*waiting) for each in latencies]


class Taken(NamedTuple):
    """What a round of requests took."""

    requests: int
    seconds: float
    """Of the server's processor."""
    wall: float
    p99: float


def _round(server: Server, path: str, body: Any, times: int, connections: int = CONNECTIONS) -> Taken:
    before, began = server.seconds(), time.perf_counter()
    latencies = run_sync(lambda: _call(server.port, path, body, times, connections))
    wall = time.perf_counter() - began
    return Taken(len(latencies), server.seconds() - before, wall, sorted(latencies)[int(len(latencies) * 0.99) - 1])


def _in_turns(
    bare: Server, ours: Server, path: str, body: Any, rounds: int, times: int, connections: int = CONNECTIONS
) -> tuple[list[Taken], list[Taken]]:
    for server in (bare, ours):
        _round(server, path, body, max(CONNECTIONS, times // 4), connections)
    found: tuple[list[Taken], list[Taken]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            found[which].append(_round((bare, ours)[which], path, body, times, connections))
    return found


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _per_second(taken: Sequence[Taken]) -> float:
    return statistics.median(each.requests / max(each.seconds, 1e-9) for each in taken)


def _by_the_clock(taken: Sequence[Taken]) -> float:
    return statistics.median(each.requests / each.wall for each in taken)


def _rates(bare: Server, ours: Server, rounds: int, size: int) -> list[Row]:
    plain, served = _in_turns(bare, ours, "/evaluate", QUESTION, rounds, size)
    rate, bare_rate = _per_second(served), _per_second(plain)
    slow, bare_slow = (statistics.median(each.p99 for each in taken) for taken in (served, plain))
    clock, bare_clock = _by_the_clock(served), _by_the_clock(plain)
    return [
        Row(
            "single requests, of a bare handler's rate", rate / bare_rate,
            f"{rate:,.0f} beside {bare_rate:,.0f} a second of CPU; {clock:,.0f} beside {bare_clock:,.0f} by the clock",
            at_least=GOAL_RATE,
        ),
        Row(
            f"p99 at concurrency {CONNECTIONS}, of a bare handler's", slow / bare_slow,
            f"{slow * 1e3:.1f} ms beside {bare_slow * 1e3:.1f} ms", at_most=GOAL_P99,
        ),
    ]  # fmt: skip


def _batches(bare: Server, ours: Server, rounds: int, size: int) -> Row:
    body = {"items": [QUESTION] * BATCH}
    plain, served = _in_turns(bare, ours, "/evaluate/batch", body, rounds, size, 8)
    rate, bare_rate = _per_second(served), _per_second(plain)
    return Row(
        f"batches of {BATCH}, of a bare handler's rate", rate / bare_rate,
        f"{rate:,.0f} beside {bare_rate:,.0f} batches a second of CPU", at_least=GOAL_RATE,
    )  # fmt: skip


def _in_workers(ours: Server, rounds: int, size: int) -> Row:
    body, path = {"items": [QUESTION] * BATCH}, "/rewards/trivial_sync/evaluate/batch"
    _round(ours, path, body, size, 8)
    taken = [_round(ours, path, body, size, 8) for _ in range(rounds)]
    each = statistics.median(one.seconds / (one.requests * BATCH) for one in taken)
    bare = _bare_call(2000)
    return Row(
        f"a synchronous reward in workers, batches of {BATCH}, CPU per verdict over the bare call", (each - bare) * 1e6,
        f"{each * 1e6:.1f} µs beside {bare * 1e6:.1f} µs, server and workers together",
        at_most=GOAL_MICROSECONDS, unit="µs",
    )  # fmt: skip


def _bare_call(times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        trivial_sync(**QUESTION)  # type: ignore[arg-type]  # the decorator makes messages of dicts
    return (time.process_time() - began) / times


def _memory(ours: Server, requests: int) -> Row:
    _round(ours, "/evaluate", QUESTION, max(CONNECTIONS, requests // 10))
    before = ours.memory()
    _round(ours, "/evaluate", QUESTION, requests)
    after = ours.memory()
    return Row(
        f"memory after {requests:,} requests more, of that before", after / before,
        f"{after / 2**20:.1f} MB beside {before / 2**20:.1f} MB", at_most=GOAL_MEMORY,
    )  # fmt: skip


def _start_up(rounds: int) -> Row:
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for which, command in enumerate(
            (_bare_command, lambda port: _ours_command(port, "benchmarks.served_reward:trivial"))
        ):
            began = time.perf_counter()
            with _server(command):
                if number:  # the first fills the disk's cache
                    times[which].append(time.perf_counter() - began)
    bare, ours = (min(each) for each in times)
    medians = [statistics.median(each) for each in times]
    return Row(
        "start-up to the first verdict, of the bare server's", ours / bare,
        f"{ours * 1e3:.0f} ms beside {bare * 1e3:.0f} ms at best; by medians {medians[1] / medians[0]:.2f} ×",
        at_most=GOAL_START,
    )  # fmt: skip
