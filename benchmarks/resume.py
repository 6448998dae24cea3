# SPDX-License-Identifier: Apache-2.0
"""Entering a finished run again, beside reading its files with orjson."""

from __future__ import annotations

import time
from pathlib import Path

import orjson

from benchmarks import own_rewards
from benchmarks.report import Report, Row
from benchmarks.scene import Timed, interleaved, timed_run, workshop
from reward_kit.config_models import PipelineConfig

__all__ = ["main"]

GOAL = 2.0
ROUNDS = 3
FILES = ("rollouts.jsonl", "results.jsonl")


def main(*, quick: bool = False) -> Report:
    """Enter a run untouched, and one that lacks its last result: only then must all of it be looked through."""
    records, rounds = (200, 1) if quick else (50_000, ROUNDS)
    with workshop() as shop:
        generation = {"model_name": "mock", "cache": {"enabled": False}}
        config = shop.config(records, generation, reward="benchmarks.own_rewards:stamped")
        timed_run(config, records)
        whole: list[float] = []
        times = interleaved(
            {
                "read": lambda: read_files(Path(config.output.output_dir)),
                "untouched": lambda: timed_run(config, records),
                "starting": lambda: _until_the_owed_record(config, records, whole),
            },
            rounds,
        )
    found = [
        _row("untouched: the whole entry", times["untouched"], times["read"]),
        _row("one result missing: until it is found to be missing", times["starting"], times["read"]),
    ]
    ratio, context = min(whole) / times["read"].best, f"{min(whole):.2f} s, with the files checked and the figures made"
    found.append(Row("one result missing: the whole entry", ratio, context))
    return Report("resume", f"entering a finished run of {records:,} records, of the time to read its files", found)


def _row(what: str, measured: Timed, read: Timed) -> Row:
    context = f"{measured.best:.3f} s of {read.best:.3f} s"
    return Row(what, measured.best / read.best, context, at_most=GOAL)


def read_files(directory: Path) -> float:
    """Seconds to read and parse every line of the run's files."""
    start = time.perf_counter()
    for name in FILES:
        with (directory / name).open("rb") as file:
            for line in file:
                orjson.loads(line)
    return time.perf_counter() - start


def _until_the_owed_record(config: PipelineConfig, records: int, whole: list[float]) -> float:
    """Take the last result away and enter the run: the reward is called once everything before was looked at."""
    _cut_last_line(Path(config.output.output_dir) / "results.jsonl")
    own_rewards.calls.clear()
    start = time.perf_counter()
    whole.append(timed_run(config, records))
    (called,) = own_rewards.calls
    return called - start


def _cut_last_line(path: Path) -> None:
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(content.rindex(b"\n", 0, len(content) - 1) + 1)
