# SPDX-License-Identifier: Apache-2.0
"""Four variants of each answer in one request, beside a loop that asks for the same and only parses the answers."""

from __future__ import annotations

from benchmarks.cold import bare_loop_uvloop_orjson
from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, timed_run, workshop

__all__ = ["main"]

VARIANTS = 4
ROUNDS = 5


def main(*, quick: bool = False) -> Report:
    """Measure at two concurrencies."""
    prompts, rounds = (25, 1) if quick else (2_500, ROUNDS)
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, 64)), 100)
        found = [_compare(shop, api_base, prompts, concurrency, rounds) for concurrency in (64, 256)]
    return Report("variants", f"processor time at n = {VARIANTS} in one request, {prompts:,} prompts", found)


def _compare(shop: Workshop, api_base: str, prompts: int, concurrency: int, rounds: int) -> Row:
    rollouts = prompts * VARIANTS
    generation = remote(api_base, concurrency, n=VARIANTS)
    times = interleaved(
        {
            "run": lambda: timed_run(shop.config(prompts, generation), rollouts),
            "bare": lambda: bare_loop_uvloop_orjson(api_base, prompts, concurrency, n=VARIANTS),
        },
        rounds,
    )
    ours, bare = (times[kind].processor / rollouts * 1e6 for kind in ("run", "bare"))
    context = f"{ours:.1f} µs of processor time per rollout beside {bare:.1f} µs"
    what = f"concurrency {concurrency}, of bare aiohttp + uvloop + orjson"
    return Row(what, ours / bare, context)
