# SPDX-License-Identifier: Apache-2.0
"""Inspecting and comparing experiments of a million records, beside an Arrow scan of the columns that are read.

The scan reads the same columns of the same file into an Arrow table and does nothing with them. With the vote and the
excerpts, that is also what was asked and answered; without them, the small columns that figures are made of.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Report, Row
from benchmarks.scene import ROOT, Timed, interleaved
from reward_kit.analysis import analyse, as_markdown, compare
from reward_kit.storage.vocabularies import FIGURES, TEXTS, find_columns

__all__ = ["main", "write_experiment"]

GOAL = 3.0
MEMORY_GOAL = 1.5
ROUNDS = 5
CANDIDATES = 4
SPLITS = ("math", "code", "tool_calling")
READ_FOR_THE_VOTE = {name: TEXTS[name] for name in ("query", "ground_truth", "response")}
WORDS = ("we", "add", "both", "numbers", "then", "check", "the", "sum", "against", "what", "was", "asked", "before")

ONE_INSPECTION = """
import json, sys
from benchmarks.one_run import peak_bytes
from reward_kit.analysis import analyse, compare
compare(*sys.argv[1:]) if len(sys.argv) > 2 else analyse(sys.argv[1])
print(json.dumps(peak_bytes() / 1e9))
"""


def main(*, quick: bool = False) -> Report:
    """Measure one file, with and without the vote, then two."""
    queries, rounds = (500, 1) if quick else (250_000, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first.parquet", Path(folder) / "second.parquet"
        write_experiment(first, queries, seed=1)
        write_experiment(second, queries, seed=2)
        times = interleaved(
            {
                "scan": lambda: timed(lambda: scan(first, FIGURES | READ_FOR_THE_VOTE)),
                "inspect": lambda: timed(lambda: as_markdown(analyse(first))),
                "figures": lambda: timed(lambda: scan(first, FIGURES)),
                "without": lambda: timed(lambda: analyse(first, vote_limit=0, examples=0)),
                "compare": lambda: timed(lambda: as_markdown(compare(first, second))),
            },
            rounds,
        )
        memory = [gigabytes(first), gigabytes(first, second)]
    records = queries * CANDIDATES
    rows = [
        _ratio(f"inspect {records:,} records, of an Arrow scan", times["inspect"], times["scan"]),
        _ratio("without vote and excerpts, of a scan of what is left", times["without"], times["figures"]),
        _ratio("comparing two, of inspecting one", times["compare"], times["inspect"]),
        Row("peak memory of inspecting", memory[0], "in a process of its own", at_most=MEMORY_GOAL, unit="GB"),
        Row("peak memory of comparing", memory[1], "in a process of its own", at_most=MEMORY_GOAL, unit="GB"),
    ]
    return Report("analysis", "what figures of an experiment cost, beside reading its columns", rows)


def _ratio(what: str, measured: Timed, base: Timed) -> Row:
    processor = f"by processor time {measured.processor / base.processor:.2f} ×"
    context = f"{measured.best:.3f} s of {base.best:.3f} s; {processor}"
    return Row(what, measured.best / base.best, context, at_most=GOAL)


def timed(work: Callable[[], object]) -> float:
    """The seconds that work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def scan(path: Path, fields: dict[str, tuple[str, ...]]) -> pa.Table:
    """Read the columns of these fields, and nothing more."""
    columns = find_columns(fields, pq.read_schema(path).names)
    return pq.read_table(path, columns=list(columns.values()))


def gigabytes(*paths: Path) -> float:
    """The peak of inspecting one experiment, or comparing two, in a process of its own."""
    command = [sys.executable, "-c", ONE_INSPECTION, *map(str, paths)]
    return float(json.loads(subprocess.check_output(command, cwd=ROOT)))


def write_experiment(path: Path, queries: int, *, seed: int) -> None:
    """A file as `reward-kit best-of-n` writes it: queries of differing difficulty, a few failures, graded scores."""
    rng = np.random.default_rng(seed)
    rows = queries * CANDIDATES
    query = np.repeat(np.arange(queries), CANDIDATES)
    chance = np.random.default_rng(0).beta(0.8, 0.6, queries)
    verified, failed = rng.random(rows) < chance[query], rng.random(rows) < 0.01
    ids = np.array([blake2b(str(number).encode(), digest_size=8).hexdigest() for number in range(queries)])
    asked = np.array([f"What is {number} plus {number * 7 % 101}? {' '.join(WORDS)}" for number in range(queries)])
    split = np.array(SPLITS)[query * len(SPLITS) // queries]
    said = (query + np.where(verified, 0, rng.integers(1, 9, rows))).tolist()
    thoughts = [" ".join((WORDS[start:] + WORDS[:start]) * 2) for start in range(len(WORDS))]
    columns: dict[str, Any] = {
        "query_id": ids[query],
        "split": split,
        "query": asked[query],
        "ground_truth": query.astype(str),
        "candidate_idx": pa.array(np.tile(np.arange(CANDIDATES), queries), pa.int32()),
        "response": [f"{thoughts[n % len(WORDS)]} {n} {thoughts[n % 7]} \\boxed{{{n}}}" for n in said],
        "is_verified": pa.array(verified, mask=failed),
        "score": pa.array(np.round(0.5 * verified + 0.5 * rng.random(rows), 3), mask=failed),
        "verifier": split,
        "error": pa.array(np.full(rows, "ProviderError: 503 overloaded"), pa.string(), mask=~failed),
        "model": np.full(rows, "a-model"),
        "finish_reason": np.where(rng.random(rows) < 0.02, "length", "stop"),
        "prompt_tokens": rng.integers(20, 400, rows),
        "completion_tokens": rng.integers(20, 4_000, rows),
        "cost": rng.random(rows) / 1_000,
        "latency_ms": rng.gamma(3, 300, rows),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=65_536)
