"""The results of `reward-kit run` and `reward-kit shell`, read as a table with the columns of a best-of-N experiment.

An answer is verified when its score reaches the run's threshold. An answer without a verdict stays without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from reward_kit.errors import DatasetError, StorageError
from reward_kit.storage.vocabularies import refuse_other_columns
from reward_kit.storage.run_directory import held_by, read_document
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.utils.checksums import check_line

__all__ = ["RunResults", "read_results"]

_COLUMNS: dict[str, pa.DataType] = {
    "query_id": pa.string(),
    "split": pa.string(),
    "candidate_idx": pa.int64(),
    "is_verified": pa.bool_(),
    "score": pa.float64(),
    "error": pa.string(),
    "error_type": pa.string(),
    "error_stage": pa.string(),
    "finish_reason": pa.string(),
    "prompt_tokens": pa.float64(),
    "completion_tokens": pa.float64(),
    "cost": pa.float64(),
    "latency_ms": pa.float64(),
    "model": pa.string(),
}
_SCHEMA = pa.schema(_COLUMNS)
_BATCH = 50_000
"""Lines that become Arrow columns at once: Python's own values take ten times the room."""


class RunResults(NamedTuple):
    """A results file."""

    table: pa.Table
    offsets: NDArray[np.int64]
    """Where each line begins."""
    metadata: dict[str, str]


def read_results(path: Path, threshold: float | None) -> RunResults:
    """Read a results.jsonl; `threshold` is the run's own unless given."""
    thresholds = thresholds_of(path.parent, threshold)
    batches, rows, offsets, offset = [], [], [], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not (offset and _is_torn(line)):
                rows.append(_row(_parsed(line, path, number), thresholds))
                offsets.append(offset)
            offset += len(line)
            if len(rows) == _BATCH:
                batches.append(_batch(rows))
                rows = []
    batches.append(_batch(rows))
    _refuse_cut(path, len(offsets))
    return RunResults(
        pa.Table.from_batches(batches, _SCHEMA),
        np.array(offsets, dtype=np.int64),
        {"pass_threshold": f"{thresholds.whole:g}"} | _told(_summary(path.parent / "summary.json")),
    )


def _is_torn(line: bytes) -> bool:
    """Whether it is the last line of a run that was cut short, or that is writing it just now."""
    if line.endswith(b"\n"):
        return False
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return True
    return False


def _refuse_cut(path: Path, found: int) -> None:
    held = held_by(path)
    if held is not None and found < held:
        raise StorageError(
            f"{str(path)!r} was cut: it holds {found} of the {held} lines it had. "
            "Enter the run again, which judges what is missing."
        )


def _parsed(line: bytes, path: Path, number: int) -> Mapping[str, Any]:
    whole = check_line(line)
    if whole is False or (whole is None and line.startswith(b'{"schema":2,')):
        raise StorageError(
            f"Line {number} of {str(path)!r} is damaged: it is not what was written there. Enter the run again, which "
            "judges that answer again."
        )
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DatasetError(
            f"Line {number} of {str(path)!r} is not JSON: {error}. Enter the run again, which mends its files."
        ) from error
    if not isinstance(row, dict) or not {"id", "task_id"} & row.keys():
        raise DatasetError(f"Line {number} of {str(path)!r} is not a result. Name a results.jsonl of `reward-kit run`.")
    if not whole:
        refuse_other_columns(row, f"Line {number} of {str(path)!r}")
    return row


def _row(line: Mapping[str, Any], thresholds: Thresholds) -> tuple[Any, ...]:
    usage = line.get("usage") or {}
    score, verified = _verdict(line, thresholds)
    failure = line.get("failure") or {}
    return (
        str(line.get("id") or line.get("task_id")),
        line.get("split"),
        line.get("response_index", 0),
        verified,
        score,
        line.get("error") if verified is None else None,
        failure.get("type"),
        failure.get("stage"),
        line.get("finish_reason"),
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        line.get("cost"),
        line.get("latency_ms"),
        line.get("model"),
    )


def _verdict(line: Mapping[str, Any], thresholds: Thresholds) -> tuple[float | None, bool | None]:
    if "overall_success" in line:
        succeeded = line["overall_success"]
        return (None, None) if succeeded is None else (float(succeeded), bool(succeeded))
    score = line.get("evaluation_score")
    if score is None or line.get("is_score_valid") is False:
        return None, None
    return float(score), score >= thresholds.of(line.get("split"))


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _summary(path: Path) -> Mapping[str, Any]:
    return read_document(path) or {}  # a run that was cut short has none, and is worth looking at


def _told(summary: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(summary[key]) for key in ("model", "model_name", "dataset_path") if summary.get(key)}
