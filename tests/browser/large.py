# SPDX-License-Identifier: Apache-2.0
"""A million records in a Parquet file, made by DuckDB in a few seconds."""

from __future__ import annotations

from pathlib import Path

SAMPLES, CANDIDATES = 250_000, 4


def make_large(folder: Path) -> Path:
    """The folder with the file in it, as best-of-n writes one."""
    import duckdb

    rows = f"""
        SELECT
            printf('s%06d', i // {CANDIDATES}) AS query_id,
            CASE WHEN i // {CANDIDATES} % 3 = 0 THEN 'hard' ELSE 'easy' END AS split,
            'Question ' || i // {CANDIDATES} AS query,
            CAST(i // {CANDIDATES} % 97 AS VARCHAR) AS ground_truth,
            CAST(i % {CANDIDATES} AS INTEGER) AS candidate_idx,
            'Answer ' || i || CASE WHEN i = 777777 THEN ' needle' ELSE '' END AS response,
            hash(i) % 5 < 3 AS is_verified,
            CAST(hash(i) % 5 < 3 AS DOUBLE) AS score,
            'exact' AS verifier, 'made up' AS verification_reason,
            'model' AS model, 'stop' AS finish_reason, CAST(hash(i) % 500 AS BIGINT) AS completion_tokens
        FROM range({SAMPLES * CANDIDATES}) AS made(i)
    """
    target = folder / "million.parquet"
    with duckdb.connect() as database:
        database.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE 20480)")
    return folder
