# SPDX-License-Identifier: Apache-2.0
"""What it costs to run a reward in a killable worker process, beside a bare call and the standard library's pools.

    python benchmarks/workers.py

Every line is measured in this run; read the ratios. All contenders take turns, workers start before the clock does,
and the best of a few rounds counts: the one that other programs disturbed least.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import uvloop

from reward_kit.workers import Done, WorkerPool

TRIVIAL_CALLS = 20_000
BUSY_CALLS = 10_000
WORKERS = min(2, os.cpu_count() or 1)
ROUNDS = 2

Args = tuple[Any, ...]
Batch = Callable[[Sequence[Args]], object]


def trivial(messages: Sequence[dict[str, str]], ground_truth: str) -> float:
    return 1.0 if ground_truth in messages[-1]["content"] else 0.0


def trivial_args(number: int) -> Args:
    answer = f"6 times {number} is {6 * number}. " * 10
    return [{"role": "user", "content": f"6 times {number}?"}, {"role": "assistant", "content": answer}], str(
        6 * number
    )


def busy(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step
    return total


def steps_for(seconds: float) -> int:
    """How many steps of `busy` take this long."""
    steps = int(20_000 * seconds / 0.001)
    return max(1, int(steps * seconds / min(seconds_for(lambda: busy(steps)) for _ in range(50))))


def seconds_for(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# ── the contenders: each a context that makes a batch to be timed ────────────────────────────────────────────────────


@contextmanager
def bare_loop(function: Callable[..., Any]) -> Iterator[Batch]:
    yield lambda calls: [function(*args) for args in calls]


@contextmanager
def worker_pool(function: Callable[..., Any]) -> Iterator[Batch]:
    pool = WorkerPool(lambda: function, size=WORKERS, timeout=10.0)

    async def batch(calls: Sequence[Args]) -> None:
        outcomes = await asyncio.gather(*[pool.submit(args, {}) for args in calls])
        assert all(isinstance(outcome, Done) for outcome in outcomes)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(pool.start())
        yield lambda calls: runner.run(batch(calls))
        runner.run(pool.close())


@contextmanager
def executor_submit(function: Callable[..., Any]) -> Iterator[Batch]:
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=_context()) as executor:
        yield lambda calls: [future.result() for future in [executor.submit(function, *args) for args in calls]]


@contextmanager
def executor_map(function: Callable[..., Any]) -> Iterator[Batch]:
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=_context()) as executor:
        yield lambda calls: list(executor.map(function, *zip(*calls, strict=True), chunksize=100))


@contextmanager
def pool_map(function: Callable[..., Any]) -> Iterator[Batch]:
    with _context().Pool(WORKERS) as pool:
        yield lambda calls: pool.starmap(function, calls)


def _context() -> Any:
    return multiprocessing.get_context("forkserver")


CONTENDERS = {
    "bare loop, one core": bare_loop,
    "WorkerPool: a future and a deadline per call": worker_pool,
    "ProcessPoolExecutor.submit: a future per call": executor_submit,
    "ProcessPoolExecutor.map: chunks of 100": executor_map,
    "multiprocessing.Pool.starmap: its own chunks": pool_map,
}


def compare(function: Callable[..., Any], calls: Sequence[Args]) -> dict[str, float]:
    """Seconds for the whole batch, by contender."""
    with ExitStack() as stack:
        batches = {name: stack.enter_context(make(function)) for name, make in CONTENDERS.items()}
        for batch in batches.values():
            batch(calls[:500])  # every worker is up and warm
        rounds = [{name: seconds_for(partial(batch, calls)) for name, batch in batches.items()} for _ in range(ROUNDS)]
    return {name: min(times[name] for times in rounds) for name in batches}


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────────


def start_up() -> tuple[float, float]:
    """Seconds until a pool is ready, and for a bare Python to start and end."""

    async def until_ready() -> float:
        start = time.perf_counter()
        async with WorkerPool(lambda: len, size=1, timeout=10.0):
            return time.perf_counter() - start

    bare = min(seconds_for(lambda: subprocess.run([sys.executable, "-c", ""], check=True)) for _ in range(10))
    return min(asyncio.run(until_ready()) for _ in range(10)), bare


def report(title: str, times: dict[str, float], tell: Callable[[float, float], str]) -> None:
    print(f"\n{title}")
    bare, *_ = times.values()
    for name, seconds in times.items():
        print(f"  {name:46} {seconds:8.3f} s   {tell(seconds, bare)}")


def main() -> None:
    ready, bare = start_up()
    print(f"a pool is ready in {ready * 1e3:.0f} ms, {ready / bare:.1f} × a bare Python ({bare * 1e3:.0f} ms)")
    report(
        f"a trivial reward, {TRIVIAL_CALLS:,} calls, {WORKERS} workers",
        compare(trivial, [trivial_args(number) for number in range(TRIVIAL_CALLS)]),
        lambda seconds, bare: f"{(seconds - bare) / TRIVIAL_CALLS * 1e6:+7.1f} µs per call over the bare call",
    )
    report(
        f"1 ms of computing, {BUSY_CALLS:,} calls, {WORKERS} workers",
        compare(busy, [(steps_for(0.001),)] * BUSY_CALLS),
        lambda seconds, bare: f"{bare / seconds:6.2f} × the speed of the bare loop",
    )


if __name__ == "__main__":
    main()
