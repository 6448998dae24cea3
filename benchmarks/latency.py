# SPDX-License-Identifier: Apache-2.0
"""A slow endpoint: how near a run comes to what its concurrency allows, and what `output.sync=batch` takes of that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, timed_run, workshop

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
            {sync: partial(_timed, shop, remote(api_base, concurrency), prompts, sync) for sync in ("close", "batch")},
            rounds,
        )
    ideal, ours = concurrency / LATENCY, prompts / measured["close"].best
    context = f"{ours:,.0f} of {ideal:,.0f} requests/s over {prompts:,} prompts"
    row = Row(f"concurrency {concurrency}, of the ideal", ours / ideal, context, at_least=GOAL)
    forced = measured["batch"].best / measured["close"].best
    context = (
        f"{measured['batch'].best:.2f} s beside {measured['close'].best:.2f} s: each batch waits for the disk twice"
    )
    rows = [row, Row("output.sync=batch, of the time with sync=close", forced, context)]
    return Report("latency", f"an endpoint that takes {LATENCY * 1000:.0f} ms to answer", rows)


def _timed(shop: Workshop, generation: Mapping[str, Any], prompts: int, sync: str) -> float:
    config = shop.config(prompts, generation)
    output = config.output.model_copy(update={"sync": sync})
    return timed_run(config.model_copy(update={"output": output}), prompts)
