# SPDX-License-Identifier: Apache-2.0
"""What an experiment's table costs: Parquet from a journal, beside pyarrow writing the same table from memory."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import Report, Row
from reward_kit.models import EvaluateResult, Message, Record, Rollout, Sample, Usage
from reward_kit.storage.best_of_n_tables import COLUMNS, Verification, experiment_row, write_parquet
from reward_kit.storage.journal import Journal
from reward_kit.storage.tables import entry_of

CANDIDATES = 8
HOW = {"math": Verification("math")}
DICTIONARIES: Any = [column.name for column in COLUMNS if column.repeats]


class Cost(NamedTuple):
    """Seconds on the clock and of the processor."""

    wall: float
    cpu: float


def main(*, quick: bool = False) -> Report:
    """Measure, and report the ratios."""
    records, rounds = (4_000, 1) if quick else (80_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _write_journal(home / "results.jsonl", records)
        ours = _best(lambda: _ours(home), rounds)
        table = _read(home / "ours.parquet")
        theirs = _best(lambda: _theirs(table, home / "theirs.parquet"), rounds)
        sizes = [(home / name).stat().st_size / records for name in ("results.jsonl", "ours.parquet")]
    told = f"{records:,} records of {sizes[0]:,.0f} bytes, {sizes[1]:,.0f} in Parquet"
    return Report(
        "best_of_n",
        "how fast an experiment's journal becomes Parquet, beside pyarrow writing the same table from memory",
        [
            Row("speed of pyarrow from memory", theirs.wall / ours.wall, f"{_rate(ours, records)}; {told}", 0.5),
            Row("the same, by processor time", theirs.cpu / ours.cpu, f"{1e6 * ours.cpu / records:.1f} µs per record"),
        ],
    )


def _rate(cost: Cost, records: int) -> str:
    return f"{records / cost.wall:,.0f} records/s"


def _best(what: Callable[[], None], rounds: int) -> Cost:
    """The least of several rounds: what else the machine does only ever adds."""
    costs = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        what()
        costs.append(Cost(time.perf_counter() - wall, time.process_time() - cpu))
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def _ours(home: Path) -> None:
    with Journal(home / "results.jsonl", read_only=True) as journal:
        write_parquet(journal.lines(), home / "ours.parquet", {"model": "m"}, HOW, journal.samples)


def _theirs(table: Any, path: Path) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(path, table.schema, compression="zstd", use_dictionary=DICTIONARIES) as writer:
        writer.write_table(table, row_group_size=8192)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)  # as ours does
    os.close(descriptor)


def _read(path: Path) -> Any:
    from pyarrow.parquet import read_table

    return read_table(path).combine_chunks()


# ── the journal ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _write_journal(path: Path, records: int) -> None:
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(5000)]

    def text(count: int) -> str:
        return " ".join(dice.choices(words, k=count))

    with Journal(path) as journal:
        for number in range(records // CANDIDATES):
            rollouts = list(_rollouts(number, text))
            verdicts = [EvaluateResult(score=float(r.response_index % 2), reason="it equals it") for r in rollouts]
            judged = map(Record.of, rollouts, verdicts)
            journal.append([entry_of(record, "ab", experiment_row(record)) for record in judged])


def _rollouts(number: int, text: Callable[[int], str]) -> Iterator[Rollout]:
    """The candidates of a query: some 2,500 characters each, half of them with reasoning before."""
    sample = Sample(
        id=f"{number:016x}", messages=[Message(role="user", content=text(60))], ground_truth=str(number), split="math",
        position=number,
    )  # fmt: skip
    for draw in range(CANDIDATES):
        thought = f"<think>{text(40)}</think>" if number % 2 else ""
        yield Rollout(
            sample=sample,
            response_index=draw,
            turns=[Message(role="assistant", content=f"{thought}{text(400)}\n\\boxed{{{number}}}")],
            model="m",
            finish_reason="stop",
            usage=Usage(prompt_tokens=80, completion_tokens=4800) if draw == 0 else None,
            cost=0.01,
            latency_ms=1000.0 + draw,
            generated_at="2026-11-15T10:00:00.000+00:00",
        )
