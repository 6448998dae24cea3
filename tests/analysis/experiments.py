# SPDX-License-Identifier: Apache-2.0
"""Small experiments, written as verdicts: a query's candidates as a string of 1 (verified), 0 (not), . (not judged)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

VERDICTS = {"1": True, "0": False, ".": None}


def rows_of(queries: Mapping[str, str], *, split: str = "math", **columns: Any) -> list[dict[str, Any]]:
    """One row per candidate; `columns` are the same in each row, or a function of (query_id, index, verdict)."""
    return [
        {
            "query_id": query_id,
            "split": split,
            "query": f"What is {query_id}?",
            "ground_truth": "4",
            "candidate_idx": index,
            "response": r"It is \boxed{4}" if verdict == "1" else r"It is \boxed{5}",
            "is_verified": VERDICTS[verdict],
            "score": None if verdict == "." else float(verdict),
            "verifier": split,
            "error": "RewardTimeoutError: it took too long" if verdict == "." else None,
        }
        | {name: value(query_id, index, verdict) if callable(value) else value for name, value in columns.items()}
        for query_id, verdicts in queries.items()
        for index, verdict in enumerate(verdicts)
    ]


def graded_rows(queries: Mapping[str, Sequence[float | None]], **columns: Any) -> list[dict[str, Any]]:
    """A row per candidate with a score and no verdict; `columns` are the same in each row."""
    return [
        {"query_id": query_id, "candidate_idx": index, "score": score, "query": f"What is {query_id}?"} | columns
        for query_id, scores in queries.items()
        for index, score in enumerate(scores)
    ]


def write_run(path: Path, queries: Mapping[str, Sequence[float | None]], **columns: Any) -> Path:
    """A run directory with these scores; `columns` are further columns of each line, or functions of (id, index)."""
    lines = [
        {
            "id": query_id, "response_index": index, "evaluation_score": score, "is_score_valid": score is not None,
            "user_query": f"What is {query_id}?", "evaluation_metrics": {}, "cost": None, "status": "ok", "split": None,
        }
        | {name: value(query_id, index) if callable(value) else value for name, value in columns.items()}
        for query_id, scores in queries.items()
        for index, score in enumerate(scores)
    ]  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    (path / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def table_of(rows: Sequence[Mapping[str, Any]], **metadata: str) -> pa.Table:
    """Rows as an Arrow table; a column that is missing in some is null there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    return table.replace_schema_metadata({key.encode(): value.encode() for key, value in metadata.items()})


def table(queries: Mapping[str, str], **columns: Any) -> pa.Table:
    return table_of(rows_of(queries, **columns))


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def simulated(
    seed: int, *, queries: int = 100, size: int = 4, rate: float = 0.5, alike: float = 0.3, missing: float = 0.0
) -> dict[str, str]:
    """Queries with chances of their own, drawn around `rate`."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(rate * (1 / alike - 1), (1 - rate) * (1 / alike - 1), queries)
    drawn: NDArray[np.bool_] = rng.random((queries, size)) < chances[:, None]
    lost: NDArray[np.bool_] = rng.random((queries, size)) < missing
    marks = np.where(lost, ".", np.where(drawn, "1", "0"))
    return {f"q{number:04d}": "".join(row) for number, row in enumerate(marks.tolist())}
