# SPDX-License-Identifier: Apache-2.0
"""Charts as plain descriptions: what is drawn, before anybody says how.

Report ──▶ Chart ──▶ chart_layout: lines, dots and words at their places ──▶ pictures: SVG, HTML, PNG
                 └─▶ terminal_chart: characters

A picture and the terminal show the same series with the same ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from reward_kit.analysis.figures import RunFigures
from reward_kit.analysis.optimal_n import OptimalN
from reward_kit.analysis.pass_curve import CurvePoint
from reward_kit.analysis.present.wording import amount, count, percent, score
from reward_kit.analysis.report import Report
from reward_kit.analysis.scores import ScoreSpread, round_steps
from reward_kit.statistics import Estimate

__all__ = ["Axis", "Chart", "ChartPoint", "Mark", "Series", "charts_of", "curve_chart"]

_MOST_SERIES = 6
"""More lines than these cannot be told apart: the first ones are drawn."""
_MOST_ROWS = 24
_FEW_KS = 8
_Y_STEPS = 5
_ROUNDING = 1e-9
_BAND = "shaded: 95 % interval"


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A value at a place, with its interval."""

    x: float
    value: float
    low: float
    high: float
    tooltip: str = ""
    """What it says in words, for whoever points at it."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points that are drawn together under one label: one curve, or one group of bars."""

    label: str
    points: tuple[ChartPoint, ...]
    interval: Literal["band", "bars", "none"] = "none"
    """How the intervals are drawn."""
    line: bool = True
    """Whether the points are joined."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on an axis that is pointed out with a dotted line."""

    at: float
    label: str
    upright: bool
    """Whether it stands on the x axis, as opposed to lying at a height."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: what it measures, and the values that are written on it. It goes from the first to the last of them."""

    title: str
    ticks: tuple[float, ...]
    names: tuple[str, ...]
    """What is written at each tick."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows, before anything is said of pixels: title, axes and series. `chart_layout` places it."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    kind: Literal["lines", "columns", "rows"] = "lines"
    """`lines`: values over a number. `columns`: a bar per bin. `rows`: a value with its interval per name."""
    note: str = ""


def charts_of(reports: Sequence[Report]) -> list[Chart]:
    """What is worth drawing of one run, or of several; none where nothing was judged."""
    known = [report for report in reports if report.overall.mean is not None]
    if not known:
        return []
    drawn = _one(known[0]) if len(reports) == 1 else _several(known)
    return [chart for chart in drawn if chart is not None]


def _one(report: Report) -> list[Chart | None]:
    charts = [curve_chart(report), _gain_chart(report.curve, report.optimal)]
    parts = [*report.splits, report.overall] if report.splits else []
    if report.score_spread is not None:
        charts = [_spread_chart(report.score_spread), *charts]
    if parts:
        charts.insert(0, _rows_chart(f"By {report.grouped_by}", parts, [part.split for part in parts]))
    if not any(charts):  # one answer per query, right or wrong
        charts = [_rows_chart(report.name, [report.overall], [report.name])]
    return charts


def _several(reports: Sequence[Report]) -> list[Chart | None]:
    rows = _rows_chart("Runs side by side", [report.overall for report in reports], [one.name for one in reports])
    curves = [(_curve_name(report), report.curve) for report in reports if len(report.curve) > 1]
    return [rows, _curves_chart(curves) if curves else None]


def _curve_name(report: Report) -> str:
    return f"{report.name} ({part})" if (part := _part_of(report)) else report.name


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def curve_chart(report: Report) -> Chart | None:
    """How many queries are right with k answers; None where there is one answer per query."""
    if len(report.curve) < len(("one", "two")):
        return None
    best = [(point.k, point.pass_at_k) for point in report.curve]
    series = [Series("at least one right (pass@k)", _shares(best, "pass@k"), "band")]
    # Where scores decide which answers are right, the best-scored is the oracle's, and has no line of its own.
    by_k = dict(best)
    scored = [(one.k, one.best_by_score) for one in report.choosing if one.best_by_score is not None]
    if any(k in by_k and abs(by_k[k].value - estimate.value) > _ROUNDING for k, estimate in scored):
        series.append(Series("best-scored right", _shares(scored, "best-scored")))
    voted = [(one.k, one.majority) for one in report.choosing if one.majority is not None]
    if len(voted) > 1:
        series.append(Series("majority right", _shares(voted, "majority")))
    marks = [] if report.optimal is None else [_optimum(report.optimal)]
    x = _k_axis([point.k for point in report.curve])
    y = _share_axis("queries, %", [point for one in series for point in _ends(one)])
    note = f"{_BAND}; {part}" if (part := _part_of(report)) else _BAND
    return Chart("What k answers per query are worth", x, y, tuple(series), tuple(marks), note=note)


def _part_of(report: Report) -> str:
    """On how many queries the curve rests, where not on all."""
    rests, whole = report.curve[-1].pass_at_k.count, report.overall.queries
    return "" if rests == whole else f"{count(rests)} of {count(whole)} queries"


def _optimum(optimal: OptimalN) -> Mark:
    return Mark(optimal.n, f"optimal N {'' if optimal.reached else '≥ '}{optimal.n}", upright=True)


def _gain_chart(curve: Sequence[CurvePoint], optimal: OptimalN | None) -> Chart | None:
    later = [point for point in curve if point.since]
    if len(later) < len(("one", "two")) or optimal is None:
        return None
    points = tuple(_gain(point) for point in later)
    y = _axis("points of pass@k", [0.0, 100 * optimal.bar, *(end for one in points for end in (one.low, one.high))])
    bar = Mark(100 * optimal.bar, f"worth it from {amount(100 * optimal.bar)} points on", upright=False)
    gains = Series("one more answer", points, "bars")
    x = _k_axis([point.k for point in later])
    return Chart("What one more answer adds", x, y, (gains,), (bar, _optimum(optimal)), note="bars: 95 % intervals")


def _gain(point: CurvePoint) -> ChartPoint:
    """What each of the answers since the point before adds, in points."""
    each = 100 / (point.k - point.since)
    value, low, high = (each * end for end in (point.gain.value, point.gain.low, point.gain.high))
    return ChartPoint(point.k, value, max(0.0, low), high, f"k = {point.k}: {amount(value)} points")


def _spread_chart(spread: ScoreSpread) -> Chart | None:
    bins = spread.bins
    if len(bins) < len(("one", "two")):
        return None
    single = bins[0].low == bins[0].high
    points = tuple(
        ChartPoint(place + 0.5, held.count, held.low, held.high, f"{held.count:,} answers")
        for place, held in enumerate(bins)
    )
    if single:
        x = Axis("score", tuple(place + 0.5 for place in range(len(bins))), tuple(amount(held.low) for held in bins))
    else:
        edges = [*(held.low for held in bins), bins[-1].high]
        x = Axis("score", tuple(map(float, range(len(edges)))), tuple(map(amount, edges)))
    y = _axis("answers", [0.0, *(float(held.count) for held in bins)], whole=True)
    return Chart("How scores are spread", x, y, (Series("answers", points),), kind="columns")


# ── several ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rows_chart(title: str, parts: Sequence[RunFigures], names: Sequence[str]) -> Chart | None:
    """A value with its interval for each part: the share that is right, or the mean score where scores are graded."""
    shares = all(part.rate is not None for part in parts) and not any(_is_graded(part) for part in parts)
    found = [(name, part.rate if shares else part.mean) for name, part in zip(names, parts, strict=True)]
    known = [(name, estimate) for name, estimate in found if estimate is not None][-_MOST_ROWS:]
    if not known:
        return None
    scale = 100 if shares else 1
    points = tuple(
        ChartPoint(place, scale * one.value, scale * one.low, scale * one.high, _value_label(one, shares))
        if isfinite(one.low)
        else ChartPoint(place, one.value, one.value, one.value, _value_label(one, shares))
        for place, (_, one) in enumerate(known)
    )
    ends = [end for point in points for end in (point.low, point.high)]
    y = Axis("", tuple(map(float, range(len(known)))), tuple(name for name, _ in known))
    x = _share_axis("answers right, %", ends) if shares else _axis("mean score", ends)
    series = Series("with 95 % interval", points, "bars", line=False)
    return Chart(title, x, y, (series,), kind="rows", note="bars: 95 % intervals")


def _is_graded(part: RunFigures) -> bool:
    return part.rate is not None and part.mean is not None and abs(part.rate.value - part.mean.value) > _ROUNDING


def _value_label(estimate: Estimate, shares: bool) -> str:
    return f"{percent(estimate)} %" if shares else score(estimate)


def _curves_chart(curves: Sequence[tuple[str, Sequence[CurvePoint]]]) -> Chart:
    shown = curves[:_MOST_SERIES]
    alone = len(shown) <= len(("one", "other"))  # more bands than two hide each other
    series = tuple(
        Series(name, _shares([(point.k, point.pass_at_k) for point in curve], name), "band" if alone else "none")
        for name, curve in shown
    )
    x = _k_axis(sorted({point.k for _, curve in shown for point in curve}))
    left = len(curves) - len(shown)
    y = _share_axis("queries with at least one right, %", [end for one in series for end in _ends(one)])
    return Chart("pass@k", x, y, series, note=f"{left} more runs are not drawn" if left else _BAND if alone else "")


# ── axes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shares(points: Sequence[tuple[int, Estimate]], what: str) -> tuple[ChartPoint, ...]:
    return tuple(
        ChartPoint(k, 100 * one.value, 100 * one.low, 100 * one.high, f"{what}, k = {k}: {percent(one)} %")
        for k, one in points
    )


def _ends(series: Series) -> list[float]:
    if series.interval == "none":
        return [point.value for point in series.points]
    return [end for point in series.points for end in (point.low, point.high)]


def _k_axis(ks: Sequence[int]) -> Axis:
    """Whole numbers of answers: each while they are few, else the first, powers of two, and the last."""
    first, last = ks[0], ks[-1]
    few = last - first < _FEW_KS
    ticks = [k for k in range(first, last + 1) if few or k in (first, last) or not k & (k - 1)]
    crowded = {tick for tick in ticks if not few and tick not in (first, last) and last - tick < (last - first) / 12}
    near = {tick for tick in ticks if not few and tick != first and tick - first < (last - first) / 24}
    shown = [tick for tick in ticks if tick not in crowded | near]
    return Axis("answers per query (k)", tuple(map(float, shown)), tuple(map(str, shown)))


def _share_axis(title: str, ends: Sequence[float]) -> Axis:
    return _axis(title, [min(max(end, 0.0), 100.0) for end in ends])


def _axis(title: str, ends: Sequence[float], *, whole: bool = False) -> Axis:
    low, high = min(ends), max(ends)
    ticks = round_steps(low, high, _Y_STEPS if not whole else max(1, min(_Y_STEPS, int(high))))
    return Axis(title, tuple(ticks), tuple(f"{tick:,.10g}".replace("-", "−") for tick in ticks))
