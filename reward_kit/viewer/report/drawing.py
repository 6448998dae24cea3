# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG inside the page, in the page's own colours: those of its style, light or dark, and on paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from markupsafe import Markup

from reward_kit.analysis.present.chart_layout import (
    COLOURS,
    FAINT,
    INK,
    Area,
    Dot,
    Drawing,
    PlacedText,
    Shape,
    Stroke,
    lay_out,
)
from reward_kit.analysis.present.charts import charts_of
from reward_kit.analysis.report import Report
from reward_kit.statistics import Estimate

__all__ = ["charts", "whisker"]

_CLASSES = {INK: "ink", FAINT: "faint"} | {colour: f"c{number}" for number, colour in enumerate(COLOURS)}
_WIDE, _HIGH, _MIDDLE = 360.0, 22.0, 11.0
_EDGE = 6.0
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def charts(reports: Sequence[Report]) -> list[Markup]:
    """What is worth drawing of one run, or of several."""
    return [_svg(lay_out(chart)) for chart in charts_of(reports)]


def _svg(drawing: Drawing) -> Markup:
    shapes = Markup().join(_shapes(drawing))
    return Markup('<svg viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>').format(
        drawing.width, drawing.height, drawing.title, shapes
    )


def _shapes(drawing: Drawing) -> Iterator[Markup]:
    for shape in drawing.shapes:
        yield _shape(shape, _CLASSES.get(shape.colour, "ink"))


def _shape(shape: Shape, kind: str) -> Markup:
    match shape:
        case Stroke():
            dots = Markup(' stroke-dasharray="2 4"') if shape.dotted else Markup()
            return Markup('<polyline class="l {}" points="{}" stroke-width="{:g}"{}/>').format(
                kind, _points(shape.points), shape.width, dots
            )
        case Area():
            return Markup('<polygon class="f {}" points="{}" fill-opacity="{:g}">{}</polygon>').format(
                kind, _points(shape.points), shape.opacity, _title(shape.tooltip)
            )
        case Dot():
            return Markup('<circle class="f {}" cx="{:.1f}" cy="{:.1f}" r="3.5">{}</circle>').format(
                kind, shape.x, shape.y, _title(shape.tooltip)
            )
        case PlacedText():
            turn = (
                Markup(' transform="rotate(-90 {:.1f} {:.1f})"').format(shape.x, shape.y) if shape.upright else Markup()
            )
            weight = Markup(' font-weight="600"') if shape.bold else Markup()
            return Markup(
                '<text class="f {}" x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="{}"{}{}>{}</text>'
            ).format(kind, shape.x, shape.y, shape.anchor, shape.size, weight, turn, shape.text)


def _title(text: str) -> Markup:
    return Markup("<title>{}</title>").format(text) if text else Markup()


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def whisker(estimate: Estimate, low: float, high: float) -> Markup:
    """A value with its interval on a line that goes from `low` to `high`."""

    def x(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return _EDGE + share * (_WIDE - 2 * _EDGE)

    ends = [x(end) if isfinite(end) else x(estimate.value) for end in (estimate.low, estimate.high)]
    ticks = Markup().join(
        Markup('<line class="l faint" x1="{0:.1f}" x2="{0:.1f}" y1="4" y2="18"/>').format(x(low + part * (high - low)))
        for part in _QUARTERS
    )
    caps = Markup().join(
        Markup('<line class="l c0 w" x1="{0:.1f}" x2="{0:.1f}" y1="7" y2="15"/>').format(end) for end in ends
    )
    track = Markup('<line class="l faint" x1="{:.1f}" x2="{:.1f}" y1="{y:g}" y2="{y:g}"/>').format(
        x(low), x(high), y=_MIDDLE
    )
    return Markup(
        '<svg class="whisker" viewBox="0 0 {wide:g} {high:g}" aria-hidden="true">{track}{ticks}'
        '<line class="l c0 w" x1="{left:.1f}" x2="{right:.1f}" y1="{y:g}" y2="{y:g}"/>{caps}'
        '<circle class="f c0" cx="{at:.1f}" cy="{y:g}" r="4.5"/></svg>'
    ).format(
        wide=_WIDE,
        high=_HIGH,
        track=track,
        ticks=ticks,
        left=ends[0],
        right=ends[1],
        y=_MIDDLE,
        caps=caps,
        at=x(estimate.value),
    )
