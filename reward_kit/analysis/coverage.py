# SPDX-License-Identifier: Apache-2.0
"""What an experiment holds and what it lacks: rows, queries, verdicts, and why some have none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reward_kit.analysis.judged_answers import NOT_JUDGED, JudgedAnswers
from reward_kit.analysis.loading import ResultsLike, load

__all__ = ["Coverage", "coverage", "failure_kinds", "models_of"]

_NO_REASON = "not judged, no reason noted"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much there is to judge by."""

    records: int
    queries: int
    judged: int
    """Rows with a verdict. The others count nowhere as wrong."""
    queries_judged: int
    """Queries with at least one verdict."""
    candidates: tuple[int, int]
    """The fewest and the most candidates a query has."""
    complete_queries: int
    """Queries with as many judged candidates as any has rows."""
    repeated: int
    """Rows that came again for the same candidate; the last one counts."""
    failures: dict[str, int]
    """Rows without a verdict, by kind, most frequent first."""
    finish_reasons: dict[str, int]
    """Why answers ended; `length` was cut off."""
    models: tuple[str, ...]


def coverage(source: ResultsLike) -> Coverage:
    """Count what there is to judge by: records, queries, verdicts, failures, models."""
    experiment = load(source)
    most = int(experiment.sizes.max())
    return Coverage(
        records=experiment.records,
        queries=experiment.queries,
        judged=int(experiment.judged.sum()),
        queries_judged=int(np.count_nonzero(experiment.judged)),
        candidates=(int(experiment.sizes.min()), most),
        complete_queries=int(np.count_nonzero(experiment.judged == most)),
        repeated=experiment.repeated,
        failures=_failures(experiment),
        finish_reasons=_counts(experiment, "finish_reason"),
        models=models_of(experiment),
    )


def _failures(experiment: JudgedAnswers) -> dict[str, int]:
    unjudged = experiment.verdict == NOT_JUDGED
    if not unjudged.any():
        return {}
    named = [name for name in ("error_stage", "error_type", "error") if name in experiment.figures.column_names]
    failed = experiment.figures.select(named).filter(pa.array(unjudged))
    kinds: Counter[str] = Counter()
    if not {"error_stage", "error_type"} - {*named}:
        pairs = failed.group_by(["error_stage", "error_type"]).aggregate([([], "count_all")]).to_pylist()
        for pair in pairs:
            kinds[_named_kind(pair["error_stage"], pair["error_type"])] += pair["count_all"]
    elif "error" in named:
        for error, times in _tally(failed["error"]):
            kinds[_kind(error)] += times
    else:
        kinds[_NO_REASON] = len(failed)
    return dict(kinds.most_common())


def failure_kinds(experiment: JudgedAnswers) -> pa.Array[Any]:
    """Why each row has no verdict, by the names that `coverage` counts; null where it has one."""
    unjudged = np.flatnonzero(experiment.verdict == NOT_JUDGED)
    named = [name for name in ("error_stage", "error_type", "error") if name in experiment.figures.column_names]
    failed = experiment.figures.select(named).take(unjudged).to_pylist()
    by_type = not {"error_stage", "error_type"} - {*named}
    kinds = [
        _named_kind(row["error_stage"], row["error_type"]) if by_type else _kind(row.get("error")) for row in failed
    ]
    names = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    codes = np.full(experiment.records, -1, dtype=np.int32)
    codes[unjudged] = [names[kind] for kind in kinds]
    places: Any = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(places, pa.array(list(names), pa.string()))


def _named_kind(stage: object, kind: object) -> str:
    """As a run's summary calls it."""
    return f"{stage}: {kind}" if stage and kind else str(kind or stage or _NO_REASON)


def _tally(column: pa.ChunkedArray[Any]) -> list[tuple[Any, int]]:
    counted: Any = column.value_counts()
    return list(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def _kind(error: object) -> str:
    """The type an error begins with: `ProviderError: 503 …` is a `ProviderError`."""
    text = str(error or "").strip()
    if not text:
        return _NO_REASON
    head, colon, _ = text.partition(":")
    return head if colon and head.isidentifier() else "other"


def _counts(experiment: JudgedAnswers, name: str) -> dict[str, int]:
    if name not in experiment.figures.column_names:
        return {}
    found = {str(value): times for value, times in _tally(experiment.figures[name]) if value is not None}
    return dict(Counter(found).most_common())


def models_of(experiment: JudgedAnswers) -> tuple[str, ...]:
    """The models that gave the answers, as the rows or the metadata name them."""
    if "model" in experiment.figures.column_names:
        named = [value for value in pc.unique(experiment.figures["model"]).to_pylist() if value]
        if named:
            return tuple(map(str, named))
    model = experiment.metadata.get("model") or experiment.metadata.get("model_name")
    return (model,) if model else ()
