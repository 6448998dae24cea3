# SPDX-License-Identifier: Apache-2.0
"""The page of a run and its line in the overview. Every figure is one of `analysis`: those that `inspect` prints."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reward_kit.analysis.figures import RunFigures
from reward_kit.analysis.hardest import QueryLine
from reward_kit.analysis.present.report_tables import report_tables
from reward_kit.analysis.report import Report
from reward_kit.analysis.scores import score_spread
from reward_kit.statistics import Estimate as Figure
from reward_kit.statistics import Interval
from reward_kit.viewer import wire
from reward_kit.viewer.columns import METRIC_COLUMN
from reward_kit.viewer.opened import OpenedRun, Snapshot, is_finished
from reward_kit.viewer.problems import ViewerError
from reward_kit.viewer.rows import columns_for
from reward_kit.viewer.views import View

__all__ = ["card_of", "estimate", "run_page"]

_CONFIDENCE = 0.95
_EXAMPLES = 5
_PATIENCE = 2.0
"""Seconds that a page waits for the majority vote."""
_VOTING = "The majority vote is still being worked out. Load the page again to see it."
_LATER = "The majority vote and the hardest samples are worked out when the run has ended."
_FIRST_LOOK = 3.0
"""Seconds that the overview waits for a run that is read for the first time."""
_UNITS = {"prompt_tokens": "tokens", "completion_tokens": "tokens", "latency_ms": "ms", "cost": ""}


def card_of(run: OpenedRun, reviews: int) -> wire.RunCard:
    """The run in a line of the overview; what cannot be read is told there, and the others are shown all the same."""
    try:
        snapshot = run.within(_FIRST_LOOK)
        if snapshot is None:
            card = _problem_card(run, reviews, None)
            card["reading"] = run.share_read
            return card
        return _card(run, snapshot, reviews)
    except ViewerError as error:
        return _problem_card(run, reviews, str(error))


def _problem_card(run: OpenedRun, reviews: int, problem: str | None) -> wire.RunCard:
    manifest = run.manifest()
    return wire.RunCard(
        key=run.key, kind=run.found.kind(), title=run.found.title, path=str(run.found.path), models=[], n=0, samples=0,
        records=0, judged=0, failed=0, mean=None, rate=None, rate_bounds=None, pass_at=[], cost=None,
        started_at=_started(manifest, {}),
        finished=is_finished(manifest), live=run.is_live(), reviews=reviews, problem=problem, reading=None,
    )  # fmt: skip


def _card(run: OpenedRun, snapshot: Snapshot, reviews: int) -> wire.RunCard:
    report = snapshot.figures
    if report is None:
        return _problem_card(run, reviews, None)
    overall, manifest, live = report.overall, run.manifest(), run.is_live()
    return wire.RunCard(
        key=run.key,
        kind=snapshot.kind,
        title=run.found.title,
        path=str(run.found.path).encode("utf-8", "replace").decode(),
        models=list(report.coverage.models),
        n=report.coverage.candidates[1],
        samples=overall.queries,
        records=overall.records,
        judged=overall.judged,
        failed=overall.failed,
        mean=estimate(overall.mean),
        rate=estimate(overall.rate),
        rate_bounds=_ends(overall.bounds.get("rate")),
        pass_at=_pass_at(overall),
        cost=overall.cost,
        started_at=_started(manifest, report.metadata),
        finished=is_finished(manifest) and not live,
        live=live,
        reviews=reviews,
        problem=None,
        reading=None,
    )


def _started(manifest: Mapping[str, Any] | None, metadata: Mapping[str, str]) -> str | None:
    phases = (manifest or {}).get("phases") or [{}]
    found = phases[0].get("started") or ((manifest or {}).get("made_by") or {}).get("created")
    return found or metadata.get("generated_at")


def estimate(found: Figure | None) -> wire.Estimate | None:
    """A figure with its interval; an end that nothing bounds is None."""
    if found is None:
        return None
    low, high = (end if isfinite(end) else None for end in (found.low, found.high))
    return wire.Estimate(value=found.value, low=low, high=high, confidence=_CONFIDENCE, count=found.count)


def _pass_at(figures: RunFigures) -> list[wire.PassAt]:
    return [
        wire.PassAt(k=k, estimate=_sure(value), bounds=_ends(figures.bounds.get(f"pass@{k}")))
        for k, value in figures.pass_at_k.items()
    ]


def _ends(bounds: Interval | None) -> list[float] | None:
    return None if bounds is None else [*bounds]


def run_page(run: OpenedRun, reviews: int) -> wire.RunPage:
    """Everything that a run's page shows."""
    snapshot = run.now()
    card = _card(run, snapshot, reviews)
    # The vote reads thousands of answers: it waits until a run has ended, so as not to take the run's own time.
    report, is_whole = (snapshot.figures, False) if card["live"] else snapshot.report_within(_PATIENCE)
    columns: Any = {by: columns_for(snapshot, View(by=by)) for by in ("sample", "record")}
    manifest, config = run.manifest(), run.config()
    if report is None:
        return wire.RunPage(
            card=card, figures=[], notes=["There are no results yet."], histogram=[], threshold=None, curve=[],
            choosing=[], metrics=[], splits=[], failures=[], spending=[], hardest=[], contested=[], columns=columns,
            config=config, manifest=manifest,
        )  # fmt: skip
    return wire.RunPage(
        card=card,
        figures=_figures(report),
        notes=[*report.notes, *([] if is_whole else [_LATER if card["live"] else _VOTING])],
        histogram=_histogram(snapshot),
        threshold=_threshold(report),
        curve=_pass_at(report.overall),
        choosing=[
            {"k": point.k, "best_by_score": estimate(point.best_by_score), "majority": estimate(point.majority)}
            for point in report.choosing
        ],
        metrics=_metrics(snapshot, report),
        splits=[_split(part) for part in report.splits],
        failures=_failures(snapshot, report),
        spending=[
            wire.QuantileLine(
                name=name, unit=_UNITS[name], mean=found.mean, p50=found.p50, p90=found.p90, p99=found.p99,
                total=None if name == "latency_ms" else found.total,
            )
            for name, found in report.spending.items()
        ],
        hardest=[_place(snapshot, line) for line in report.hardest],
        contested=[_place(snapshot, line) for line in report.contested],
        columns=columns,
        config=config,
        manifest=manifest,
    )  # fmt: skip


def _sure(found: Figure) -> wire.Estimate:
    told = estimate(found)
    assert told is not None
    return told


def _figures(report: Report) -> list[list[str]]:
    """The terminal's first table, the line of the whole run: name and text."""
    tables = report_tables(report, full=True)
    told: list[list[str]] = []
    for table in tables:
        if table.rows and table.headers and table.rows[-1][0] == "all":
            told += [[header, cell] for header, cell in zip(table.headers[1:], table.rows[-1][1:], strict=True)]
        elif not table.headers and len(table.rows[0]) == len(("name", "value")):
            told += [list(row) for row in table.rows]
    return told


def _threshold(report: Report) -> float | None:
    text = report.metadata.get("pass_threshold")
    if report.overall.rate is None or text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _histogram(snapshot: Snapshot) -> list[wire.Bin]:
    spread = score_spread(snapshot.held().scores)
    return [] if spread is None else [wire.Bin(low=one.low, high=one.high, count=one.count) for one in spread.bins]


def _metrics(snapshot: Snapshot, report: Report) -> list[wire.MetricLine]:
    table = snapshot.held_columns.record
    return [
        wire.MetricLine(name=name, mean=_sure(mean), count=len(held) - held.null_count)
        for name, mean in report.overall.metrics.items()
        for held in [table[f"{METRIC_COLUMN}{name}"]]
    ]


def _split(part: RunFigures) -> wire.SplitLine:
    return wire.SplitLine(
        name=part.split, samples=part.queries, records=part.records, mean=estimate(part.mean),
        rate=estimate(part.rate), rate_bounds=_ends(part.bounds.get("rate")), pass_at=_pass_at(part),
    )  # fmt: skip


def _failures(snapshot: Snapshot, report: Report) -> list[wire.FailureLine]:
    answers, kinds = snapshot.held(), snapshot.held_columns.record["failure"]
    found: list[wire.FailureLine] = []
    for kind, count in report.coverage.failures.items():
        same: Any = pc.equal(kinds, pa.scalar(kind))
        rows = np.flatnonzero(same.fill_null(False).to_numpy())[:_EXAMPLES]
        errors = answers.figures["error"] if "error" in answers.figures.column_names else None
        message = "" if errors is None or not len(rows) else str(errors[int(rows[0])].as_py() or "")
        places = [
            wire.RecordPlace(
                id=snapshot.names[int(answers.query_of_row[row])].as_py(), index=int(answers.candidate[row])
            )
            for row in rows
        ]
        found.append(wire.FailureLine(kind=kind, count=count, message=message[:2_000], examples=places))
    return found


def _place(snapshot: Snapshot, line: QueryLine) -> wire.RecordPlace:
    """The first candidate of a query that is listed."""
    answers = snapshot.held()
    name = line.query_id
    if not snapshot.has_sample(name):
        name = f"{line.query_id}@{line.split}"
    return wire.RecordPlace(id=name, index=int(answers.candidate[answers.starts[snapshot.sample_of(name)]]))
