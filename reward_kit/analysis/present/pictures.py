# SPDX-License-Identifier: Apache-2.0
"""Charts as files: SVG and HTML written by ourselves, PNG by matplotlib, all from the same drawing.

Nothing is fetched from the network, and the same figures give the same file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from reward_kit.analysis.present.chart_layout import FAINT, INK, Area, Dot, Drawing, PlacedText, Shape, Stroke, lay_out
from reward_kit.analysis.present.charts import charts_of
from reward_kit.analysis.present.conclusions import report_conclusion
from reward_kit.analysis.present.report_tables import report_tables
from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.report import Report
from reward_kit.errors import ConfigError, needs_extra
from reward_kit.storage.files import Draft

__all__ = ["check_picture", "draw", "plot"]

_PAPER = {INK: "#22272e", FAINT: "#d8dde3"}
_PAGE = {INK: "currentColor", FAINT: "#8885"}
_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
_SHARP = 200
"""Dots per inch of a PNG; a drawing has a hundred pixels per inch."""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { display: block; width: 100%; max-width: 760px; height: auto; margin: 1rem 0; }
@media (prefers-color-scheme: dark) { svg { filter: brightness(1.35); } }
.found { font-size: 1.15rem; font-weight: 600; margin: .2rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: 14px; }
td, th { padding: .15rem .7rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }
td.prose, th.prose { text-align: left; white-space: normal; } .note { opacity: .75; max-width: 46rem; }
h2 { font-size: 1.05rem; margin: 1.4rem 0 .2rem; }
"""


def plot(reports: Report | Sequence[Report], path: str | Path) -> None:
    """Draw one or several reports into a .png, .svg or .html file."""
    draw([reports] if isinstance(reports, Report) else list(reports), Path(path))


def draw(reports: Sequence[Report], target: Path, compared: Sequence[str] = ()) -> None:
    """Draw reports; `compared` says how they differ, in sentences, which a page begins with."""
    check_picture(target)
    drawings = [lay_out(chart) for chart in charts_of(reports)]
    if not drawings:
        raise ConfigError("Nothing was judged, so there is nothing to draw. Inspect the failures first.")
    kind = target.suffix.casefold()
    with Draft(target, advice="Name another file.") as draft:
        if kind == ".png":
            _write_png(drawings, draft.path)
        else:
            draft.write((_svg_of(drawings) if kind == ".svg" else _html(reports, drawings, compared)).encode())


def check_picture(path: Path) -> None:
    """Refuse a file that cannot be drawn, before anything is computed."""
    kind = path.suffix.casefold()
    if kind not in _KINDS:
        raise ConfigError(f"Cannot draw {str(path)!r}. Name a file that ends in {', '.join(_KINDS)}.")
    if kind == ".png":
        _matplotlib()


# ── SVG and HTML ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _svg_of(drawings: Sequence[Drawing]) -> str:
    width, height = max(one.width for one in drawings), sum(one.height for one in drawings)
    parts, top = [f'<rect width="{width:g}" height="{height:g}" fill="white"/>'], 0.0
    for drawing in drawings:
        parts.append(f'<g transform="translate(0 {top:g})">{"".join(_svg_shapes(drawing, _PAPER))}</g>')
        top += drawing.height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
    return f'{head} height="{height:g}" font-family="{_FONT}">{"".join(parts)}</svg>\n'


def _html(reports: Sequence[Report], drawings: Sequence[Drawing], compared: Sequence[str]) -> str:
    title = reports[0].name if len(reports) == 1 else "Several runs"
    found = compared or [_named(report, len(reports) > 1) for report in reports]
    body = [f"<h1>{escape(title)}</h1>", *(f'<p class="found">{escape(sentence)}</p>' for sentence in found)]
    if len(reports) == 1:
        body += _sentences(report_conclusion(reports[0])[1:])
    body += [_inline(drawing) for drawing in drawings]
    for report in reports:
        if len(reports) > 1:
            body += [f"<h1>{escape(report.name)}</h1>", *_sentences(report_conclusion(report))]
        body += [_table(table) for table in report_tables(report)]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head>'
        f"<body>{''.join(body)}</body></html>\n"
    )


def _named(report: Report, one_of_several: bool) -> str:
    """What a report found, in its first sentence."""
    return f"{report.name}: {report_conclusion(report)[0]}" if one_of_several else report_conclusion(report)[0]


def _sentences(sentences: Sequence[str]) -> list[str]:
    return [f"<p>{escape(sentence)}</p>" for sentence in sentences]


def _inline(drawing: Drawing) -> str:
    box = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}" font-family="{_FONT}"'
    return f'<svg {box} role="img" aria-label="{escape(drawing.title)}">{"".join(_svg_shapes(drawing, _PAGE))}</svg>'


def _svg_shapes(drawing: Drawing, colours: dict[str, str]) -> Iterator[str]:
    for shape in drawing.shapes:
        yield _svg(shape, colours.get(shape.colour, shape.colour))


def _svg(shape: Shape, colour: str) -> str:
    match shape:
        case Stroke():
            dots = ' stroke-dasharray="2 4"' if shape.dotted else ""
            style = f'fill="none" stroke="{colour}" stroke-width="{shape.width:g}"{dots} stroke-linejoin="round"'
            return f'<polyline points="{_svg_points(shape.points)}" {style}/>'
        case Area():
            title = f"<title>{escape(shape.tooltip)}</title>" if shape.tooltip else ""
            style = f'fill="{colour}" fill-opacity="{shape.opacity:g}"'
            return f'<polygon points="{_svg_points(shape.points)}" {style}>{title}</polygon>'
        case Dot():
            place = f'cx="{shape.x:.1f}" cy="{shape.y:.1f}"'
            return f'<circle {place} r="3.5" fill="{colour}"><title>{escape(shape.tooltip)}</title></circle>'
        case PlacedText():
            turn = f' transform="rotate(-90 {shape.x:.1f} {shape.y:.1f})"' if shape.upright else ""
            weight = ' font-weight="600"' if shape.bold else ""
            place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" text-anchor="{shape.anchor}" font-size="{shape.size}"'
            return f'<text {place} fill="{colour}"{weight}{turn}>{escape(shape.text)}</text>'


def _svg_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _table(table: TextTable) -> str:
    head = f"<tr>{''.join(_cell('th', text, column, table) for column, text in enumerate(table.headers))}</tr>"
    rows = "".join(
        f"<tr>{''.join(_cell('td', text, column, table) for column, text in enumerate(row))}</tr>" for row in table.rows
    )
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f'{title}<div class="scroll"><table>{head if table.headers else ""}{rows}</table></div>{note}'


def _cell(tag: str, text: str, column: int, table: TextTable) -> str:
    prose = ' class="prose"' if not column or column in table.prose else ""
    return f"<{tag}{prose}>{escape(text)}</{tag}>"


# ── PNG ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _matplotlib() -> Any:
    with needs_extra("Drawing a .png (.svg and .html need nothing)", "plot"):
        from matplotlib.figure import Figure
    return Figure


def _write_png(drawings: Sequence[Drawing], target: Path) -> None:
    width, height = max(one.width for one in drawings), sum(one.height for one in drawings)
    figure = _matplotlib()(figsize=(width / 100, height / 100), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    top = 0.0
    for drawing in drawings:
        for layer, shape in enumerate(drawing.shapes):
            _paint(axes, shape, _PAPER.get(shape.colour, shape.colour), top, layer)
        top += drawing.height
    figure.savefig(target, dpi=_SHARP, format="png")


def _paint(axes: Any, shape: Shape, colour: str, top: float, layer: int) -> None:
    point = 0.72  # of a pixel: an inch has a hundred pixels and 72 points
    match shape:
        case Stroke():
            style: Any = (0, (1.5, 3)) if shape.dotted else "-"
            xs, ys = zip(*shape.points, strict=True)
            width = shape.width * point
            axes.plot(xs, [top + y for y in ys], color=colour, linewidth=width, linestyle=style, zorder=layer)
        case Area():
            xs, ys = zip(*shape.points, strict=True)
            axes.fill(xs, [top + y for y in ys], color=colour, alpha=shape.opacity, linewidth=0, zorder=layer)
        case Dot():
            axes.plot([shape.x], [top + shape.y], color=colour, marker="o", markersize=7 * point, zorder=layer)
        case PlacedText():
            side = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            axes.text(
                shape.x, top + shape.y, shape.text, color=colour, fontsize=shape.size * point, parse_math=False,
                ha=side if not shape.upright else "center", va="baseline" if not shape.upright else "center",
                rotation=90 if shape.upright else 0, fontweight="bold" if shape.bold else "normal", zorder=layer,
            )  # fmt: skip


_KINDS = (".png", ".svg", ".html")
