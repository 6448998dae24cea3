# SPDX-License-Identifier: Apache-2.0
"""A run whose every answer is in the cache, beside orjson reading and writing the same lines and nothing else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

from benchmarks.report import Report, Row
from benchmarks.scene import Workshop, interleaved, mock_server, remote, timed_run, workshop

__all__ = ["main"]

ROUNDS = 5
WRITTEN = ("rollouts.jsonl", "results.jsonl")


def main(*, quick: bool = False) -> Report:
    """Measure at two concurrencies."""
    prompts, rounds = (50, 1) if quick else (5_000, ROUNDS)
    with workshop() as shop, mock_server() as api_base:
        timed_run(shop.config(100, remote(api_base, 64)), 100)
        found = [_compare(shop, api_base, prompts, concurrency, rounds) for concurrency in (64, 256)]
    return Report("cached", f"processor time of a run of {prompts:,} prompts whose every answer is cached", found)


def _compare(shop: Workshop, api_base: str, prompts: int, concurrency: int, rounds: int) -> Row:
    generation, cache = remote(api_base, concurrency), shop.fresh("cache")
    first = shop.config(prompts, generation, cache=cache)
    timed_run(first, prompts)
    read = [shop.prompts(prompts), *cache.rglob("*.jsonl")]
    written = [_lines(Path(first.output.output_dir) / name) for name in WRITTEN]

    times = interleaved(
        {
            "cached": lambda: timed_run(shop.config(prompts, generation, cache=cache), prompts),
            "lines": lambda: read_and_write(read, written, shop.fresh("lines")),
        },
        rounds,
    )
    ours, lines = (times[kind].processor / prompts * 1e6 for kind in ("cached", "lines"))
    context = f"{ours:.1f} µs of processor time per record beside {lines:.1f} µs"
    return Row(f"concurrency {concurrency}, of orjson reading and writing its lines", ours / lines, context)


def _lines(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def read_and_write(read: list[Path], written: list[list[Any]], directory: Path) -> float:
    """Seconds to parse the lines that such a run reads, and to write those that it writes, in one go for each file."""
    start = time.perf_counter()
    for path in read:
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
    directory.mkdir()
    for number, rows in enumerate(written):
        with (directory / str(number)).open("wb") as file:
            file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return time.perf_counter() - start
