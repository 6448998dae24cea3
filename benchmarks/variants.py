"""Four variants of each answer: asked for in one request, beside four requests."""

from __future__ import annotations

from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, timed_run, workshop

__all__ = ["main"]

VARIANTS = 4
GOAL = 2.0
ROUNDS = 2


def main(*, quick: bool = False) -> Report:
    """Measure at two concurrencies."""
    prompts, rounds = (25, 1) if quick else (5_000, ROUNDS)
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, 64)), 100)
        found = [_compare(shop, api_base, prompts, concurrency, rounds) for concurrency in (64, 256)]
    return Report("variants", f"n = {VARIANTS} in one request, {prompts:,} prompts", found)


def _compare(shop: Workshop, api_base: str, prompts: int, concurrency: int, rounds: int) -> Row:
    rollouts = prompts * VARIANTS

    def run(mode: str) -> float:
        generation = remote(api_base, concurrency, n=VARIANTS, n_mode=mode)
        return timed_run(shop.config(prompts, generation), rollouts)

    times = interleaved({"one": lambda: run("auto"), "four": lambda: run("fanout")}, rounds)
    one, four = rollouts / times["one"].best, rollouts / times["four"].best
    context = f"{one:,.0f} and {four:,.0f} rollouts/s"
    return Row(f"concurrency {concurrency}, of four single requests", one / four, context, at_least=GOAL)
