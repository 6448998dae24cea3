# SPDX-License-Identifier: Apache-2.0
"""The narrow columns of a run as two Arrow tables: one row per record, one row per sample.

They are made of the arrays from which `inspect` makes its figures. Texts are not among them: they stay in the files.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reward_kit.analysis.coverage import failure_kinds
from reward_kit.analysis.judged_answers import METRIC, NOT_JUDGED, JudgedAnswers
from reward_kit.viewer.wire import ColumnInfo

__all__ = ["DATA", "METRIC_COLUMN", "WIDE", "Columns", "columns_of", "describe_columns"]

METRIC_COLUMN, DATA = "metric.", "data."
"""How the columns of metrics and of the dataset begin."""
WIDE = {"query": "Prompt", "response": "Answer", "ground_truth": "Ground truth", "reason": "Reason"}
"""Long texts: shown as excerpts, filtered by what they hold, not sorted by."""

_LABELS = {
    "id": "Id", "index": "Candidate", "split": "Split", "score": "Score", "passed": "Passed", "failure": "Failure",
    "finish_reason": "Ended by", "model": "Model", "latency_ms": "Latency, ms", "prompt_tokens": "Prompt tokens",
    "completion_tokens": "Answer tokens", "cost": "Cost", "length": "Length", "candidates": "Candidates",
    "judged": "Judged", "rate": "Pass rate", "best": "Best score", "worst": "Worst score", "failed": "Failed",
}  # fmt: skip
_CHOICES = 50
"""A text column with at most so many values lists them."""
_KEPT_TEXTS = ("finish_reason", "model")
_KEPT_NUMBERS = ("latency_ms", "prompt_tokens", "completion_tokens", "cost")


class Columns(NamedTuple):
    """The tables; their first column, `row`, counts the rows."""

    record: pa.Table
    sample: pa.Table

    def of(self, by: Literal["sample", "record"]) -> pa.Table:
        """The table whose rows are samples, or records."""
        return self.record if by == "record" else self.sample


def columns_of(answers: JudgedAnswers, names: pa.Array[Any]) -> Columns:
    """The narrow columns of these answers, whose samples are called `names`."""
    return Columns(_records(answers, names), _samples(answers, names))


def _records(answers: JudgedAnswers, names: pa.Array[Any]) -> pa.Table:
    sample = answers.query_of_row
    held: dict[str, Any] = {
        "row": np.arange(answers.records),
        "sample": sample,
        "id": _dictionary(sample, names),
        "index": answers.candidate,
    }
    if answers.has_splits:
        held["split"] = _dictionary(answers.query_split[sample], answers.splits)
    held["score"] = _numbers(answers.scores)
    if answers.has_passes:
        held["passed"] = pa.array(answers.verdict == 1, mask=answers.verdict == NOT_JUDGED)
    held["failure"] = failure_kinds(answers)
    for name in (name for name in _KEPT_TEXTS if name in answers.figures.column_names):
        held[name] = answers.figures[name]
    for name in _KEPT_NUMBERS:
        if (values := answers.numbers(name)) is not None:
            held[name] = _numbers(values)
    for metric in answers.metrics:
        if (values := answers.numbers(f"{METRIC}{metric}")) is not None:
            held[f"{METRIC_COLUMN}{metric}"] = _numbers(values)
    return pa.table(held)


def _samples(answers: JudgedAnswers, names: pa.Array[Any]) -> pa.Table:
    held: dict[str, Any] = {"row": np.arange(answers.queries), "id": names}
    if answers.has_splits:
        held["split"] = _dictionary(answers.query_split, answers.splits)
    held |= {"candidates": answers.sizes, "judged": answers.judged, "failed": answers.sizes - answers.judged}
    if answers.has_passes:
        held["passed"] = answers.verified
        with np.errstate(invalid="ignore"):
            held["rate"] = _numbers(answers.verified / answers.judged)
    held["score"] = _numbers(_means(answers, answers.scores))
    held["best"] = _numbers(_reduced(answers, answers.scores, np.fmax))
    held["worst"] = _numbers(_reduced(answers, answers.scores, np.fmin))
    for name in _KEPT_NUMBERS:
        if (values := answers.numbers(name)) is not None:
            summed = name in ("cost", "prompt_tokens", "completion_tokens")
            held[name] = _numbers(_sums(answers, values) if summed else _means(answers, values))
    for metric in answers.metrics:
        if (values := answers.numbers(f"{METRIC}{metric}")) is not None:
            held[f"{METRIC_COLUMN}{metric}"] = _numbers(_means(answers, values))
    return pa.table(held)


def _dictionary(codes: NDArray[Any], values: tuple[str, ...] | pa.Array[Any]) -> Any:
    held = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), held)


def _numbers(values: NDArray[np.float64]) -> Any:
    return pa.array(values, mask=np.isnan(values))


def _reduced(answers: JudgedAnswers, values: NDArray[np.float64], how: np.ufunc) -> NDArray[np.float64]:
    found: NDArray[np.float64] = how.reduceat(values, answers.starts[:-1])
    return found


def _sums(answers: JudgedAnswers, values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = _reduced(answers, (~np.isnan(values)).astype(np.float64), np.add)
    return np.where(known > 0, _reduced(answers, np.nan_to_num(values), np.add), np.nan)


def _means(answers: JudgedAnswers, values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = _reduced(answers, (~np.isnan(values)).astype(np.float64), np.add)
    with np.errstate(invalid="ignore"):
        return _reduced(answers, np.nan_to_num(values), np.add) / known


# ── what the page is told of them ────────────────────────────────────────────────────────────────────────────────────


def describe_columns(table: pa.Table, by: Literal["sample", "record"], data: dict[str, str]) -> list[ColumnInfo]:
    """What each column is called and holds; `data`: the dataset's columns with their types."""
    found: list[ColumnInfo] = []
    for name in table.column_names:
        if name not in ("row", "sample"):
            found.append(_described(name, table[name]))
    texts = ["query", "ground_truth"] if by == "sample" else list(WIDE)
    found[1:1] = [_info(name, WIDE[name], "text", wide=True) for name in texts]
    if by == "record":
        found.append(_info("length", _LABELS["length"], "number"))
    for name, kind in data.items():
        found.append(_info(f"{DATA}{name}", name, kind, group="data"))
    return found


def _described(name: str, column: pa.ChunkedArray[Any]) -> ColumnInfo:
    kind = column.type
    if pa.types.is_boolean(kind):
        return _info(name, _label(name), "boolean")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        group = "metric" if name.startswith(METRIC_COLUMN) else "core"
        return _info(name, _label(name), "number", group=group)
    info = _info(name, _label(name), "text")
    if name != "id":
        values = column.unique()
        if len(values) <= _CHOICES:
            info["choices"] = sorted(str(value) for value in values.to_pylist() if value is not None)
    return info


def _label(name: str) -> str:
    return _LABELS.get(name) or name.removeprefix(METRIC_COLUMN)


def _info(name: str, label: str, kind: Any, *, group: Any = "core", wide: bool = False) -> ColumnInfo:
    return ColumnInfo(name=name, label=label, type=kind, group=group, wide=wide, choices=None)
