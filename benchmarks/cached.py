"""A run whose every answer is in the cache, beside the run that put them there."""

from __future__ import annotations

from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, timed_run, workshop

__all__ = ["main"]

GOAL = 3.0
ROUNDS = 3


def main(*, quick: bool = False) -> Report:
    """Measure at two concurrencies."""
    prompts, rounds = (50, 1) if quick else (5_000, ROUNDS)
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, 64)), 100)
        found = [_compare(shop, api_base, prompts, concurrency, rounds) for concurrency in (64, 256)]
    return Report("cached", f"a second run of {prompts:,} prompts: fresh run directory, every answer cached", found)


def _compare(shop: Workshop, api_base: str, prompts: int, concurrency: int, rounds: int) -> Row:
    generation = remote(api_base, concurrency)
    caches = [shop.fresh("cache")]

    def cold() -> float:
        caches.append(shop.fresh("cache"))
        return cached()

    def cached() -> float:
        return timed_run(shop.config(prompts, generation, cache=caches[-1]), prompts)

    times = interleaved({"cold": cold, "cached": cached}, rounds)
    first, second = times["cold"].best, times["cached"].best
    by_processor = times["cold"].processor / times["cached"].processor
    context = f"{second:.2f} s beside {first:.2f} s; by processor time {by_processor:.2f} ×"
    return Row(f"concurrency {concurrency}, faster than the cold run", first / second, context, at_least=GOAL)
