# SPDX-License-Identifier: Apache-2.0
"""Where everything in a chart stands: lines, dots, areas and words on a sheet, in pixels from the upper left corner.

Margins are as wide as what is written in them, and words that would lie on one another are moved apart, so that no
label is cut or covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from reward_kit.analysis.present.charts import Chart, ChartPoint, Series

__all__ = ["Area", "Dot", "Drawing", "PlacedText", "Shape", "Stroke", "lay_out"]

COLOURS = ("#2f6db5", "#c8622a", "#2f8a5b", "#8552a1", "#a9831f", "#58636f")
"""One colour per series, told apart also by people who see fewer of them."""
INK, FAINT = "ink", "faint"
"""The colours of words and of the grid: those of the page, whatever they are."""

WIDTH = 720
_HEIGHT = 360
_ROW = 30
_SIZE = 12
_TITLE = 15
_LETTER = 0.6
"""The width of a letter, of its height: a little more than most fonts need."""
_GAP = 8
_STEPS = 16
"""Places between two points of a curve at which it is looked whether it runs through a label."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line that is drawn through points, such as a curve, an axis or the frame of a chart."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """A filled shape, such as a bar or the band of an interval."""

    points: tuple[tuple[float, float], ...]
    colour: str
    opacity: float
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A point, and what it says to whoever points at it."""

    x: float
    y: float
    colour: str
    tooltip: str


@dataclass(frozen=True, slots=True)
class PlacedText:
    """Text whose anchor lies at a place."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    colour: str = INK
    size: int = _SIZE
    bold: bool = False
    upright: bool = False
    """Turned by a quarter, to be read from below."""


Shape = Stroke | Area | Dot | PlacedText


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart that only has to be drawn."""

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]


def lay_out(chart: Chart) -> Drawing:
    """Put a chart on a sheet."""
    height = _HEIGHT if chart.kind != "rows" else 110 + _ROW * len(chart.y.ticks)
    sheet = _Sheet(chart, height)
    shapes = [*sheet.frame(), *sheet.marks(), *sheet.content()]
    return Drawing(WIDTH, height, chart.title, tuple(shapes))


def _wide(text: str, size: int = _SIZE) -> float:
    return _LETTER * size * len(text)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most // 2] + "…" + text[-(most - most // 2 - 1) :]


def _ends_of_line(
    left: float, right: float, wide: float
) -> list[tuple[float, Literal["start", "middle", "end"], float]]:
    """Where words of this width may begin or end beside a line: where they are put, how, and their left edge."""
    return [(left, "start", left), (right, "end", right - wide)]


class _Sheet:
    """The places of one chart."""

    def __init__(self, chart: Chart, height: float) -> None:
        self.chart = chart
        self.names = [_shortened(name, 34) for name in chart.y.names]
        labels = [series.label for series in chart.series] if self._labelled else []
        widest = max(map(_wide, labels), default=0.0)
        self.left = max(map(_wide, self.names)) + _GAP * 2 + (20 if chart.y.title else 0)
        self.right = WIDTH - max(24.0, min(widest + 2 * _GAP, 220.0))
        self.top, self.bottom = 58.0, height - 52.0
        self.below = height

    @property
    def _labelled(self) -> bool:
        return self.chart.kind == "lines" and len(self.chart.series) > 1

    def x(self, value: float) -> float:
        first, last = self._reach(self.chart.x.ticks)
        return self.left + (value - first) / (last - first) * (self.right - self.left)

    def y(self, value: float) -> float:
        first, last = self._reach(self.chart.y.ticks)
        if self.chart.kind == "rows":  # names are read from the top
            return self.top + _ROW / 2 + value * _ROW
        return self.bottom - (value - first) / (last - first) * (self.bottom - self.top)

    def _reach(self, ticks: Sequence[float]) -> tuple[float, float]:
        first, last = ticks[0], ticks[-1]
        if self.chart.kind == "columns" and ticks is self.chart.x.ticks and first > 0:  # a name per column, not an edge
            return first - 0.5, last + 0.5
        return (first, last) if last > first else (first - 0.5, first + 0.5)

    def frame(self) -> Iterator[Shape]:
        chart, end = self.chart, self.top + _ROW * len(self.chart.y.ticks)
        bottom = end if chart.kind == "rows" else self.bottom
        yield PlacedText(16, 24, _shortened(chart.title, 70), size=_TITLE, bold=True)
        for tick, name in zip(chart.y.ticks, self.names, strict=True):
            if chart.kind != "rows":
                yield Stroke(((self.left, self.y(tick)), (self.right, self.y(tick))), FAINT)
            yield PlacedText(self.left - _GAP, self.y(tick) + _SIZE / 3, name, "end")
        for tick, name in zip(chart.x.ticks, chart.x.names, strict=True):
            if chart.kind == "rows":
                yield Stroke(((self.x(tick), self.top), (self.x(tick), bottom)), FAINT)
            yield PlacedText(self.x(tick), bottom + 18, name, "middle")
        yield Stroke(((self.left, bottom), (self.right, bottom)), INK)
        yield PlacedText((self.left + self.right) / 2, bottom + 38, chart.x.title, "middle")
        if chart.y.title:
            yield PlacedText(16, (self.top + self.bottom) / 2, chart.y.title, "middle", upright=True)
        if chart.note:
            yield PlacedText(WIDTH - 16, 24, chart.note, "end")

    def marks(self) -> Iterator[Shape]:
        for mark in self.chart.marks:
            if mark.upright:
                at = self.x(mark.at)
                yield Stroke(((at, self.top), (at, self.bottom)), INK, dotted=True)
                # Beside the line where there is room, and above all curves: the top of the frame is kept free.
                left = at + _wide(mark.label) > self.right
                yield PlacedText(at + (-6 if left else 6), self.top - 6, mark.label, "end" if left else "start")
            else:
                at = self.y(mark.at)
                yield Stroke(((self.left, at), (self.right, at)), INK, dotted=True)
                yield self._beside(at, mark.label)

    def _beside(self, at: float, label: str) -> PlacedText:
        """The label of a level line: at one of its ends, above or below, where least of the curves lies on it."""
        wide, high = _wide(label), _SIZE + 2
        places = [
            (PlacedText(x, base, label, anchor), (left, base - high, left + wide, base + 3))
            for base in (at - 6, at + high + 2)
            for x, anchor, left in _ends_of_line(self.left + 10, self.right, wide)
        ]
        words, _ = min(places, key=lambda place: self._covered(*place[1]))
        return words

    def _covered(self, left: float, top: float, right: float, bottom: float) -> int:
        """How much of what is drawn lies in a box: steps along the curves, and intervals."""
        count = 0
        for series in self.chart.series:
            for point, following in pairwise(series.points):
                for step in range(_STEPS):
                    share = step / _STEPS
                    x = self.x(point.x + share * (following.x - point.x))
                    y = self.y(point.value + share * (following.value - point.value))
                    count += left <= x <= right and top <= y <= bottom
            bars = series.points if series.interval == "bars" else ()
            count += sum(
                left <= self.x(bar.x) <= right and self.y(bar.high) <= bottom and top <= self.y(bar.low) for bar in bars
            )
        uprights = [self.x(mark.at) for mark in self.chart.marks if mark.upright]
        return count + sum(left <= x <= right for x in uprights) + (bottom > self.bottom)

    def content(self) -> Iterator[Shape]:
        if self.chart.kind == "columns":
            yield from self._columns(self.chart.series[0])
            return
        if self.chart.kind == "rows":
            yield from self._rows(self.chart.series[0])
            return
        for number, series in enumerate(self.chart.series):
            yield from self._line(series, COLOURS[number % len(COLOURS)])
        if self._labelled:
            yield from self._labels()

    def _line(self, series: Series, colour: str) -> Iterator[Shape]:
        points = series.points
        if series.interval == "band":
            above = [(self.x(point.x), self.y(point.high)) for point in points]
            below = [(self.x(point.x), self.y(point.low)) for point in reversed(points)]
            yield Area((*above, *below), colour, 0.14)
        if series.interval == "bars":
            for point in points:
                at = self.x(point.x)
                yield Stroke(((at, self.y(point.low)), (at, self.y(point.high))), colour, 1.5)
        yield Stroke(tuple((self.x(point.x), self.y(point.value)) for point in points), colour, 2)
        for point in points:
            yield self._dot(point, self.x(point.x), self.y(point.value), colour)

    def _dot(self, point: ChartPoint, x: float, y: float, colour: str) -> Dot:
        return Dot(x, y, colour, point.tooltip)

    def _labels(self) -> Iterator[PlacedText]:
        """The name of each line at its end, moved down where it would lie on another."""
        ends = [(series.points[-1], number, series.label) for number, series in enumerate(self.chart.series)]
        free_from: dict[float, float] = {}
        longest = max(8, int((WIDTH - self.right - 2 * _GAP) / (_LETTER * _SIZE)))
        height = [sum(point.value for point in series.points) for series in self.chart.series]
        for end, number, label in sorted(ends, key=lambda held: (self.y(held[0].value), -height[held[1]])):
            at = max(self.y(end.value), free_from.get(end.x, self.top))
            free_from[end.x] = at + _SIZE + 4
            colour = COLOURS[number % len(COLOURS)]
            yield PlacedText(self.x(end.x) + _GAP, at + _SIZE / 3, _shortened(label, longest), colour=colour)

    def _columns(self, series: Series) -> Iterator[Shape]:
        for point in series.points:
            left, right = self.x(point.x - 0.46), self.x(point.x + 0.46)
            top = self.y(point.value)
            corners = ((left, self.bottom), (left, top), (right, top), (right, self.bottom))
            yield Area(corners, COLOURS[0], 0.75, point.tooltip)

    def _rows(self, series: Series) -> Iterator[Shape]:
        for point in series.points:
            at = self.y(point.x)
            low, high = (min(max(self.x(end), self.left), self.right) for end in (point.low, point.high))
            yield Stroke(((low, at), (high, at)), COLOURS[0], 2)
            yield self._dot(point, self.x(point.value), at, COLOURS[0])
