# SPDX-License-Identifier: Apache-2.0
"""A chart drawn with characters, for a terminal: the first series of lines, with its intervals.

queries, %
80 ┤                      ●
   │              ●       │
60 ┤      ●       │
   │●     │
40 ┤│
   └──────────────────────────
    1     2       3       4
    answers per query (k)
"""

from __future__ import annotations

from reward_kit.analysis.present.charts import Chart

__all__ = ["draw_chart"]

_LEAST = 3
"""Fewer points are no curve."""
_ROWS_PER_TICK = 3


def draw_chart(chart: Chart | None, *, width: int = 72) -> str:
    """Draw a chart of lines; an empty text where there are too few points to see a curve."""
    if chart is None or chart.kind != "lines" or len(chart.series[0].points) < _LEAST:
        return ""
    ticks, names = chart.y.ticks, chart.y.names
    margin = max(map(len, names)) + 2
    height = _ROWS_PER_TICK * (len(ticks) - 1) + 1
    room = width - margin - len(chart.x.names[-1])
    grid = [[" "] * (width - margin) for _ in range(height)]

    def line(value: float) -> int:
        return height - 1 - round((value - ticks[0]) / (ticks[-1] - ticks[0]) * (height - 1))

    def column(x: float) -> int:
        return round((x - chart.x.ticks[0]) / (chart.x.ticks[-1] - chart.x.ticks[0]) * (room - 1))

    for point in chart.series[0].points:
        for row in range(line(point.high), line(point.low) + 1):
            grid[row][column(point.x)] = "│"
        grid[line(point.value)][column(point.x)] = "●"
    named = {line(tick): name for tick, name in zip(ticks, names, strict=True)}
    drawn = [
        f"{named.get(row, '').rjust(margin - 2)} {'┤' if row in named else '│'}{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    below = [" "] * width
    for tick, name in zip(chart.x.ticks, chart.x.names, strict=True):
        at = margin + column(tick)
        below[at : at + len(name)] = name
    head = f"{chart.y.title}: {chart.series[0].label}; │ is the 95 % interval"
    axis = " " * (margin - 1) + "└" + "─" * (width - margin)
    lines = [head, *drawn, axis, "".join(below), " " * margin + chart.x.title]
    return "\n".join(text.rstrip() for text in lines)
