# SPDX-License-Identifier: Apache-2.0
"""Reports and comparisons as JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import orjson

from reward_kit.analysis.figures import RunFigures
from reward_kit.analysis.present.conclusions import comparison_conclusion, report_conclusion
from reward_kit.analysis.present.report_tables import comparison_tables, report_tables
from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.report import Report
from reward_kit.analysis.run_comparison import RunComparison
from reward_kit.statistics import Estimate, Interval

__all__ = ["as_csv", "as_json", "as_markdown", "finite"]

_HEADER = ("experiment", "split", "figure", "k", "value", "low", "high", "queries", "all_wrong", "all_right")
_BOUNDED = {"mean score": "mean", "verified": "rate", "first": "first", "any": "any"}
"""What the figures are called that have bounds where answers have no verdict."""
_PAIRED_HEADER = (
    "baseline",
    "other",
    "split",
    "figure",
    "before",
    "after",
    "difference",
    "low",
    "high",
    "won",
    "lost",
    "p",
    "queries",
)


def as_json(found: Report | RunComparison) -> str:
    """The whole report, or comparison, as indented JSON, with numbers not rounded."""
    return orjson.dumps(finite(found.as_dict()), option=orjson.OPT_INDENT_2).decode()


def finite(value: Any) -> Any:
    """JSON has no infinity: where a bound is unknown it is null."""
    if isinstance(value, dict):
        return {str(key): finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [finite(held) for held in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def as_markdown(found: Report | RunComparison) -> str:
    """The tables a terminal shows, for a pull request or a notebook."""
    if isinstance(found, Report):
        return "\n".join([f"# {found.name}", "", *report_conclusion(found), "", *_markdown(report_tables(found))])
    return "\n".join(["# Comparison", "", *comparison_conclusion(found), "", *_markdown(comparison_tables(found))])


def _markdown(tables: Sequence[TextTable]) -> Iterator[str]:
    for table in tables:
        if table.title:
            yield f"## {table.title}\n"
        width = max(len(table.headers), *(len(row) for row in table.rows), 0) if table.rows else len(table.headers)
        headers = table.headers or ("",) * width
        yield _line(headers)
        yield "|" + "|".join("---" if column in table.prose or not column else "---:" for column in range(width)) + "|"
        yield from map(_line, table.rows)
        yield f"\n{table.note}\n" if table.note else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def as_csv(found: Report | RunComparison) -> str:
    """One line a figure, for a spreadsheet: what it is, its value, its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if isinstance(found, Report):
        writer.writerow(_HEADER)
        writer.writerows(_figures(found))
    else:
        writer.writerow(_PAIRED_HEADER)
        writer.writerows(_paired(found))
    return out.getvalue()


def _figures(report: Report) -> Iterator[tuple[Any, ...]]:
    for figures in (*report.splits, report.overall):
        for name, estimate in _named(figures):
            yield (
                report.name,
                figures.split,
                name,
                "",
                *_cells(estimate),
                *_ends(figures.bounds.get(_BOUNDED.get(name, ""))),
            )
    for one in report.candidates:
        yield (report.name, "all", f"candidate {one.index}", "", *_cells(one.rate), *_ends(None))
    for point in report.curve:
        for name, estimate in (("pass@k", point.pass_at_k), ("gain", point.gain), ("pass^k", point.pass_hat_k)):
            bounds = point.bounds if name == "pass@k" else None
            yield (report.name, "all", name, point.k, *_cells(estimate), *_ends(bounds))
    for choice in report.choosing:
        for name, found in (("majority@k", choice.majority), ("best@k", choice.best_by_score)):
            if found is not None:
                yield (report.name, "all", name, choice.k, *_cells(found), *_ends(None))


def _named(figures: RunFigures) -> Iterator[tuple[str, Estimate | None]]:
    yield "mean score", figures.mean
    yield from ((f"mean {name}", found) for name, found in figures.metrics.items())
    if figures.rate is None:
        return
    yield "verified", figures.rate
    yield "first", figures.first
    yield "any", figures.any
    if figures.best_by_score is not None:
        yield "best by score", figures.best_by_score
    if figures.majority is not None:
        yield "majority", figures.majority


def _cells(estimate: Estimate | None) -> tuple[Any, ...]:
    return ("", "", "", 0) if estimate is None else (estimate.value, estimate.low, estimate.high, estimate.count)


def _ends(bounds: Interval | None) -> tuple[Any, Any]:
    return ("", "") if bounds is None else (bounds.low, bounds.high)


def _paired(comparison: RunComparison) -> Iterator[tuple[Any, ...]]:
    for pairing in comparison.pairings:
        for one in pairing.differences:
            yield (
                pairing.baseline, pairing.other, one.split, one.figure, one.baseline, one.other, one.difference,
                one.low, one.high, one.won, one.lost, one.p, one.queries,
            )  # fmt: skip
