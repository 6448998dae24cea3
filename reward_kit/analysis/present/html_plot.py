"""A page with the curves as SVG and the tables under them: one file, no script, nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from reward_kit.analysis.present.report_tables import TextTable, report_tables
from reward_kit.analysis.present.wording import percent
from reward_kit.analysis.report import Report
from reward_kit.statistics import Estimate

__all__ = ["html_page"]

_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 16, 40
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.grid { stroke: currentColor; opacity: .15; } .axis { stroke: currentColor; opacity: .5; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: 14px; }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }
td.prose, th.prose { text-align: left; white-space: normal; } .note { opacity: .75; max-width: 46rem; }
h2 { font-size: 1.05rem; margin: 1.4rem 0 .2rem; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin: 0 .3em 0 1em; }
"""


class _Line(NamedTuple):
    """A curve to draw."""

    label: str
    colour: str
    points: list[tuple[int, Estimate]]


def html_page(reports: Sequence[Report], colours: Sequence[str]) -> str:
    """The page as text."""
    lines = list(_lines(reports, colours))
    title = reports[0].name if len(reports) == 1 else "pass@k of several experiments"
    keys = "".join(
        f'<span><i class="key" style="background:{line.colour}"></i>{escape(line.label)}</span>' for line in lines
    )
    body = [f"<h1>{escape(title)}</h1>", f"<p>{keys}</p>", _svg(lines)]
    for report in reports:
        if len(reports) > 1:
            body.append(f"<h1>{escape(report.name)}</h1>")
        body += [_table(table) for table in report_tables(report)]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _lines(reports: Sequence[Report], colours: Sequence[str]) -> Iterator[_Line]:
    for number, report in enumerate(reports):
        label = "at least one of k (pass@k)" if len(reports) == 1 else report.name
        yield _Line(label, colours[number % len(colours)], [(point.k, point.pass_at_k) for point in report.curve])
    if len(reports) > 1:
        return
    majority = [(point.k, point.majority) for point in reports[0].choosing if point.majority is not None]
    best = [(point.k, point.best_by_score) for point in reports[0].choosing if point.best_by_score is not None]
    for label, colour, points in (("majority of k", colours[1], majority), ("best-scored of k", colours[2], best)):
        if points:
            yield _Line(label, colour, points)
    yield _Line("each of k", colours[5], [(point.k, point.pass_hat_k) for point in reports[0].curve])


class _Frame(NamedTuple):
    """Where values stand in the picture."""

    last: int
    low: float
    high: float

    def x(self, k: float) -> float:
        """A number of candidates, from 1 at the left."""
        return _LEFT + (k - 1) / max(self.last - 1, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        """A share, the highest at the top."""
        return _TOP + (self.high - share) / (self.high - self.low) * (_HEIGHT - _TOP - _BOTTOM)


def _svg(lines: Sequence[_Line]) -> str:
    estimates = [estimate for line in lines for _, estimate in line.points]
    low = max(0.0, min(estimate.low for estimate in estimates) - 0.02)
    high = min(1.0, max(estimate.high for estimate in estimates) + 0.02)
    frame = _Frame(max(k for line in lines for k, _ in line.points), low, max(high, low + 0.01))
    parts = [*_grid(frame), *(part for line in lines for part in _drawn(line, frame))]
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="pass@k by k">{"".join(parts)}</svg>'


def _grid(frame: _Frame) -> Iterator[str]:
    steps = 5
    for step in range(steps + 1):
        share = frame.low + (frame.high - frame.low) * step / steps
        y = f"{frame.y(share):.1f}"
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end" dominant-baseline="middle">{100 * share:.1f} %</text>'
    apart = max(1, frame.last // 12)
    for k in [*range(1, frame.last, apart), frame.last]:
        if k == frame.last or frame.last - k >= apart:
            yield f'<text x="{frame.x(k):.1f}" y="{_HEIGHT - 20}" text-anchor="middle">{k}</text>'
    yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 4}" text-anchor="middle">candidates a query (k)</text>'


def _drawn(line: _Line, frame: _Frame) -> Iterator[str]:
    above = [f"{frame.x(k):.1f},{frame.y(estimate.high):.1f}" for k, estimate in line.points]
    below = [f"{frame.x(k):.1f},{frame.y(estimate.low):.1f}" for k, estimate in reversed(line.points)]
    middle = [f"{frame.x(k):.1f},{frame.y(estimate.value):.1f}" for k, estimate in line.points]
    yield f'<polygon points="{" ".join(above + below)}" fill="{line.colour}" opacity=".15"/>'
    yield f'<polyline points="{" ".join(middle)}" fill="none" stroke="{line.colour}" stroke-width="2"/>'
    for k, estimate in line.points:
        told = escape(f"{line.label}, k = {k}: {percent(estimate)} %")
        at = f'cx="{frame.x(k):.1f}" cy="{frame.y(estimate.value):.1f}"'
        yield f'<circle {at} r="3.5" fill="{line.colour}"><title>{told}</title></circle>'


def _table(table: TextTable) -> str:
    head = f"<tr>{''.join(_cell('th', text, column, table) for column, text in enumerate(table.headers))}</tr>"
    rows = "".join(
        f"<tr>{''.join(_cell('td', text, column, table) for column, text in enumerate(row))}</tr>" for row in table.rows
    )
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f"{title}<table>{head if table.headers else ''}{rows}</table>{note}"


def _cell(tag: str, text: str, column: int, table: TextTable) -> str:
    prose = ' class="prose"' if not column or column in table.prose else ""
    return f"<{tag}{prose}>{escape(text)}</{tag}>"
