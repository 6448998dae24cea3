# SPDX-License-Identifier: Apache-2.0
"""Charts: what is drawn can be read, and it is the same as a picture, as a page and in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_kit.analysis import Report, analyse, load, plot
from reward_kit.analysis.present.chart_layout import PlacedText, Stroke, lay_out
from reward_kit.analysis.present.charts import Chart, charts_of, curve_chart
from reward_kit.analysis.present.terminal_chart import draw_chart
from reward_kit.errors import ConfigError, StorageError
from tests.analysis.experiments import graded_rows, rows_of, simulated, table, table_of

REPORT = analyse(table(simulated(1, size=8)))
OTHER = analyse(table(simulated(2, size=3, rate=0.7)))
MANY = analyse(table(simulated(3, size=40, queries=20, rate=0.1)))
GRADED = analyse(
    load(table_of(graded_rows({str(n): [n / 40, n / 50, 0.3] for n in range(40)}, subject="law")), by="subject")
)


def charts(*reports: Report) -> list[Chart]:
    found = charts_of(reports)
    assert found
    return found


ALL = {"one": (REPORT,), "many candidates": (MANY,), "graded": (GRADED,), "several": (REPORT, OTHER, MANY, GRADED)}


# ── what is drawn can be read ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reports", ALL.values(), ids=ALL)
def test_axes_have_titles_and_few_round_ticks_that_span_what_is_drawn(reports: tuple[Report, ...]) -> None:
    for chart in charts(*reports):
        values = chart.x if chart.kind == "rows" else chart.y
        assert chart.x.title and (chart.y.title or chart.kind == "rows")
        assert 2 <= len(values.ticks) <= 6
        assert len(set(values.names)) == len(values.names)
        assert all(len(name) <= 5 for name in values.names), "4.8, 21.5, 38.2 are no ticks"
        for series in chart.series:
            for point in series.points:
                assert values.ticks[0] - 1e-9 <= point.value <= values.ticks[-1] + 1e-9
                if series.interval != "none":
                    assert values.ticks[0] - 1e-9 <= point.low <= point.high <= values.ticks[-1] + 1e-9


@pytest.mark.parametrize("reports", ALL.values(), ids=ALL)
def test_no_label_is_cut_or_covered(reports: tuple[Report, ...]) -> None:
    for chart in charts(*reports):
        _assert_readable(chart)


def _assert_readable(chart: Chart) -> None:
    drawing = lay_out(chart)
    boxes = [_box(words) for words in drawing.shapes if isinstance(words, PlacedText)]
    for left, top, right, bottom in boxes:
        assert 0 <= left <= right <= drawing.width + 1
        assert 0 <= top <= bottom <= drawing.height
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, f"{one} lies on {other} in {chart.title!r}"


def _box(words: PlacedText) -> tuple[float, float, float, float]:
    """Where words lie, in a font of usual width."""
    wide, high = 0.55 * words.size * len(words.text), 0.9 * words.size
    if words.upright:
        return words.x - high, words.y - wide / 2, words.x + 2, words.y + wide / 2
    left = words.x - {"start": 0.0, "middle": wide / 2, "end": wide}[words.anchor]
    return left, words.y - high, left + wide, words.y + 2


def test_a_level_line_is_labelled_where_no_curve_runs() -> None:
    for report in (REPORT, OTHER, MANY, *(analyse(table(simulated(seed, size=16, rate=0.5))) for seed in range(5))):
        for chart in charts(report):
            labels = {mark.label for mark in chart.marks if not mark.upright}
            shapes = lay_out(chart).shapes
            boxes = [_box(words) for words in shapes if isinstance(words, PlacedText) and words.text in labels]
            curves = [shape.points for shape in shapes if isinstance(shape, Stroke) and shape.colour.startswith("#")]
            for left, top, right, bottom in boxes:
                inside = [(x, y) for x, y in _along(curves) if left <= x <= right and top <= y <= bottom]
                assert not inside, chart.title


def _along(curves: Sequence[Sequence[tuple[float, float]]]) -> Iterator[tuple[float, float]]:
    """Places close to each other on every line."""
    for points in curves:
        for (x, y), (further, lower) in pairwise(points):
            yield from ((x + step / 20 * (further - x), y + step / 20 * (lower - y)) for step in range(21))


def test_lines_that_end_together_are_named_in_the_order_in_which_they_came() -> None:
    slow, fast = (
        analyse(load(table({"a": marks, "b": "1111"}), name=name)) for name, marks in (("s", "0001"), ("f", "0111"))
    )
    (chart,) = [chart for chart in charts(slow, fast) if chart.title == "pass@k"]
    named = [words for words in lay_out(chart).shapes if isinstance(words, PlacedText) and words.text in ("s", "f")]
    assert [words.text for words in sorted(named, key=lambda words: words.y)] == ["f", "s"]


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=60), min_size=2,
                max_size=6, unique=True))  # fmt: skip
def test_runs_of_any_name_can_be_read(names: list[str]) -> None:
    marks = {str(number): "1101"[: 2 + number % 3] for number in range(6)}
    reports = [analyse(load(table(marks), name=name), vote_limit=0, examples=0) for name in names]
    for chart in charts(*reports):
        _assert_readable(chart)


def test_the_first_and_the_last_number_of_answers_are_written() -> None:
    for report in (REPORT, OTHER, MANY):
        chart = curve_chart(report)
        assert chart is not None
        assert (chart.x.names[0], chart.x.names[-1]) == ("1", str(report.curve[-1].k))


def test_the_optimum_is_marked() -> None:
    assert REPORT.optimal is not None
    chart = curve_chart(REPORT)
    assert chart is not None
    (mark,) = chart.marks
    assert mark.at == REPORT.optimal.n and str(REPORT.optimal.n) in mark.label


def test_a_line_that_would_lie_on_another_is_left_out() -> None:
    chart = curve_chart(REPORT)
    assert chart is not None
    assert [series.label for series in chart.series] == ["at least one right (pass@k)", "majority right"]
    graded = analyse(table(simulated(1, size=8), score=lambda _, index, verdict: float(index)))
    chart = curve_chart(graded)
    assert chart is not None and "best-scored right" in [series.label for series in chart.series]


# ── a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 78, 118])
def test_the_drawing_rises_from_left_to_right_and_keeps_to_its_width(width: int) -> None:
    chart = curve_chart(REPORT)
    assert chart is not None
    _, *lines = draw_chart(chart, width=width).splitlines()
    assert max(map(len, lines)) <= width
    points = sorted((place, row) for row, line in enumerate(lines) for place in _places(line))
    assert len(points) == 8
    assert [row for _, row in points] == sorted((row for _, row in points), reverse=True)
    assert lines[-2].split() == [*map(str, range(1, 9))]
    assert [line.split()[0] for line in lines if "┤" in line] == [*reversed(chart.y.names)]


def _places(line: str) -> list[int]:
    return [place for place, mark in enumerate(line) if mark == "●"]


def test_two_points_are_no_curve() -> None:
    assert draw_chart(curve_chart(analyse(table({"a": "10"})))) == ""
    assert draw_chart(None) == ""


def test_a_flat_curve_is_drawn_flat() -> None:
    drawn = draw_chart(curve_chart(analyse(table({str(number): "1111" for number in range(9)}))))
    assert sum("●" in line for line in drawn.splitlines()) == 1


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "magic"), [("curve.png", b"\x89PNG"), ("curve.svg", b"<svg"), ("CURVE.HTML", b"<!doctype")]
)
def test_a_picture_is_what_its_name_says_and_the_same_each_time(name: str, magic: bytes, tmp_path: Path) -> None:
    for reports in (REPORT, [REPORT, OTHER], GRADED):
        plot(reports, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        assert first.startswith(magic)
        plot(reports, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first


def test_an_svg_holds_every_word_and_every_point_of_its_charts(tmp_path: Path) -> None:
    plot(REPORT, tmp_path / "curve.svg")
    tree = ElementTree.parse(tmp_path / "curve.svg").getroot()
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    drawings = [lay_out(chart) for chart in charts(REPORT)]
    assert texts == [shape.text for one in drawings for shape in one.shapes if isinstance(shape, PlacedText)]
    points = sum(len(series.points) for chart in charts(REPORT) for series in chart.series)
    assert len([*tree.iter("{http://www.w3.org/2000/svg}circle")]) == points


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.png, \.svg, \.html"):
        plot(REPORT, tmp_path / "curve.bmp")
    with pytest.raises(ConfigError, match="nothing to draw"):
        plot(analyse(table({"a": "."})), tmp_path / "curve.html")
    with pytest.raises(StorageError, match="Cannot write"):
        plot(REPORT, tmp_path / "no" / "such" / "folder.html")


class Page(HTMLParser):
    """Notes what a page refers to, and that it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        assert tag != "script"
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pages(folder: Path, several: Sequence[Sequence[Report]]) -> Iterator[str]:
    for reports in several:
        plot(list(reports), folder / "page.html")
        yield (folder / "page.html").read_text()


def test_a_page_needs_nothing_from_anywhere_and_trusts_no_text(tmp_path: Path) -> None:
    hostile = analyse(table_of(rows_of({"<script>alert(1)</script>": "100"}, query="<img src=x>"), notes="<b>&"))
    for text in pages(tmp_path, [[REPORT], [REPORT, OTHER], [hostile], [GRADED]]):
        page = Page()
        page.feed(text)
        assert (page.open, page.addresses) == ([], [])
        assert "http" not in text
        assert "<script" not in text


def test_a_page_says_first_what_was_found(tmp_path: Path) -> None:
    (text,) = pages(tmp_path, [[REPORT]])
    found = re.search(r'<p class="found">(.*?)</p>', text)
    assert found is not None and "of the answers are right" in found[1]
    assert text.index("found") < text.index("<svg") < text.index("<table")
