# SPDX-License-Identifier: Apache-2.0
"""A cold run with everything on, beside a loop that only sends the same requests and parses the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import aiohttp
import orjson
import uvloop

from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, rows, timed_run, workshop

__all__ = ["main"]

GOAL = 0.6
ROUNDS = 5


def main(*, quick: bool = False) -> Report:
    """Measure at two concurrencies."""
    prompts, rounds = (50, 1) if quick else (5_000, ROUNDS)
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, 64)), 100)  # imports, and the server's own warming up
        found = [row for concurrency in (64, 256) for row in _compare(shop, api_base, prompts, concurrency, rounds)]
    return Report("cold", f"a run of {prompts:,} prompts with cache, journals, scoring and progress on", found)


def _compare(shop: Workshop, api_base: str, prompts: int, concurrency: int, rounds: int) -> Iterator[Row]:
    times = interleaved(
        {
            "run": lambda: timed_run(shop.config(prompts, remote(api_base, concurrency)), prompts),
            "json": lambda: bare_loop(api_base, prompts, concurrency),
            "uvloop + orjson": lambda: bare_loop_uvloop_orjson(api_base, prompts, concurrency),
        },
        rounds,
    )
    ours = times["run"]
    for kind, goal in (("json", GOAL), ("uvloop + orjson", None)):
        bare = times[kind]
        context = (
            f"{prompts / ours.best:,.0f} of {prompts / bare.best:,.0f} requests/s; "
            f"by medians {bare.median / ours.median:.2f} ×, by processor time {bare.processor / ours.processor:.2f} ×"
        )
        what = f"concurrency {concurrency}, of bare aiohttp + {kind}"
        yield Row(what, bare.best / ours.best, context, at_least=goal)


def bare_loop(api_base: str, prompts: int, concurrency: int) -> float:
    """Seconds to send every request and parse its answer, with what most people would write first."""

    async def ask(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
        async with session.post(url, json=body) as response:
            return await response.json()

    return _timed(partial(asyncio.run, _send_all(api_base, prompts, concurrency, ask)))


def bare_loop_uvloop_orjson(api_base: str, prompts: int, concurrency: int, n: int = 1) -> float:
    """The same with the fastest loop and the fastest JSON; `n` answers in one request."""
    headers = {"Content-Type": "application/json"}

    async def ask(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
        async with session.post(url, data=orjson.dumps(body), headers=headers) as response:
            return orjson.loads(await response.read())

    return _timed(partial(uvloop.run, _send_all(api_base, prompts, concurrency, ask, n)))


async def _send_all(api_base: str, prompts: int, concurrency: int, ask: Callable[..., Any], n: int = 1) -> None:
    url = f"{api_base}/chat/completions"
    waiting = bodies(prompts, n)
    answered = 0

    async def hand(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        for body in waiting:
            answer = await ask(session, url, body)
            answered += sum(bool(choice["message"]["content"]) for choice in answer["choices"])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*[hand(session) for _ in range(concurrency)])
    assert answered == prompts * n


def bodies(prompts: int, n: int = 1) -> Iterator[dict[str, Any]]:
    """The requests a run sends."""
    for row in rows(prompts):
        messages = [{"role": "user", "content": row["user_query"]}]
        several = {} if n == 1 else {"n": n}
        yield {"model": "mock-model", "messages": messages, "temperature": 0.7, "max_tokens": 1024, **several}


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
