# SPDX-License-Identifier: Apache-2.0
"""A slow endpoint: how near a run comes to what its concurrency allows."""

from __future__ import annotations

from benchmarks.report import Report, Row
from benchmarks.scene import interleaved, mock_server, remote, timed_run, workshop

__all__ = ["main"]

GOAL = 0.9
ROUNDS = 2
LATENCY = 0.2


def main(*, quick: bool = False) -> Report:
    """Time whole runs, their start and end included."""
    concurrency, rounds = (16, 1) if quick else (256, ROUNDS)
    prompts = concurrency * (3 if quick else 20)  # full rounds of requests: only those can reach the ideal
    with workshop() as shop, mock_server(latency_ms=LATENCY * 1000) as api_base:
        timed_run(shop.config(concurrency, remote(api_base, concurrency)), concurrency)
        measured = interleaved(
            {"run": lambda: timed_run(shop.config(prompts, remote(api_base, concurrency)), prompts)}, rounds
        )
    ideal, ours = concurrency / LATENCY, prompts / measured["run"].best
    context = f"{ours:,.0f} of {ideal:,.0f} requests/s over {prompts:,} prompts"
    row = Row(f"concurrency {concurrency}, of the ideal", ours / ideal, context, at_least=GOAL)
    return Report("latency", f"an endpoint that takes {LATENCY * 1000:.0f} ms to answer", [row])
