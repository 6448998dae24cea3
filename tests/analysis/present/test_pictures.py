"""The curve as characters, as a picture and as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reward_kit.analysis import analyse, plot
from reward_kit.analysis.present.curve_drawing import draw_curve
from reward_kit.analysis.present.html_plot import html_page
from reward_kit.analysis.present.plots import COLOURS
from reward_kit.errors import ConfigError
from tests.analysis.experiments import rows_of, simulated, table, table_of

REPORT = analyse(table(simulated(1, size=8)))
OTHER = analyse(table(simulated(2, size=3, rate=0.7)))


@pytest.mark.parametrize("width", [40, 78, 118])
def test_the_drawing_rises_from_left_to_right_and_keeps_to_its_width(width: int) -> None:
    lines = draw_curve(REPORT.curve, width=width).splitlines()
    assert max(map(len, lines)) <= width
    points = sorted((line.index("●", start), row) for row, line in enumerate(lines) for start in _places(line))
    assert len(points) == 8
    assert [row for _, row in points] == sorted((row for _, row in points), reverse=True)
    assert lines[-1].split() == ["k", *map(str, range(1, 9))]


def _places(line: str) -> list[int]:
    return [place for place, mark in enumerate(line) if mark == "●"]


def test_two_points_are_no_curve() -> None:
    assert draw_curve(analyse(table({"a": "10"})).curve) == ""
    assert draw_curve(()) == ""


def test_a_flat_curve_is_drawn_flat() -> None:
    drawn = draw_curve(analyse(table({str(number): "1111" for number in range(9)})).curve)
    assert sum("●" in line for line in drawn.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "magic"), [("curve.png", b"\x89PNG"), ("curve.svg", b"<?xml"), ("CURVE.HTML", b"<!doctype")]
)
def test_a_picture_is_what_its_name_says(name: str, magic: bytes, tmp_path: Path) -> None:
    for reports in (REPORT, [REPORT, OTHER]):
        plot(reports, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
        first = (tmp_path / name).read_bytes()
        plot(reports, tmp_path / name)
        if name != "curve.svg":  # its ids are random
            assert (tmp_path / name).read_bytes() == first


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ends in \.png, \.svg, \.html"):
        plot(REPORT, tmp_path / "curve.bmp")
    with pytest.raises(ConfigError, match="no curve to draw"):
        plot(analyse(table({"a": "."})), tmp_path / "curve.html")
    with pytest.raises(ConfigError, match="Cannot write"):
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


def test_a_page_needs_nothing_from_anywhere_and_trusts_no_text() -> None:
    hostile = analyse(table_of(rows_of({"<script>alert(1)</script>": "100"}, query="<img src=x>"), notes="<b>&"))
    for reports in ([REPORT], [REPORT, OTHER], [hostile]):
        text = html_page(reports, COLOURS)
        page = Page()
        page.feed(text)
        assert (page.open, page.addresses) == ([], [])
        assert "http" not in text
        assert "<script" not in text
    assert len(re.findall("<polyline", html_page([REPORT, OTHER], COLOURS))) == 2
