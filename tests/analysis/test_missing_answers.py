# SPDX-License-Identifier: Apache-2.0
"""Runs with answers that have no verdict, missing by chance or not: every figure says its population, or its bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from reward_kit.analysis import Report, RunFigures, analyse, as_csv, as_json, as_markdown
from reward_kit.analysis.present.conclusions import report_conclusion
from reward_kit.analysis.present.report_tables import report_tables
from reward_kit.statistics import Estimate, pass_at_k
from tests.analysis.experiments import table, write_run

ROUNDING = 1e-9


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    """What is true of each answer, and what is known of it; right or wrong ones may be likelier to lack."""
    size = draw(st.integers(1, 6))
    truth = draw(st.lists(st.text("01", min_size=size, max_size=size), min_size=1, max_size=25))
    lost = {mark: draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])) for mark in "01"}
    chance = st.floats(0, 1, exclude_max=True)
    known = ["".join("." if draw(chance) < lost[mark] else mark for mark in marks) for marks in truth]
    whole = {f"q{number}": marks for number, marks in enumerate(truth)}
    return whole, dict(zip(whole, known, strict=True))


def right(marks: str) -> int:
    return marks.count("1")


def truths(whole: dict[str, str], k: int) -> dict[str, float]:
    """The figures, were everything known."""
    queries = whole.values()
    return {
        "rate": sum(map(right, queries)) / sum(map(len, queries)),
        "mean": sum(map(right, queries)) / sum(map(len, queries)),
        "first": sum(marks[0] == "1" for marks in queries) / len(whole),
        "any": sum("1" in marks for marks in queries) / len(whole),
        f"pass@{k}": sum(pass_at_k(len(marks), right(marks), k) for marks in queries) / len(whole),
    }


@given(runs())
@example(({"a": "1", "b": "0"}, {"a": "1", "b": "."}))
def test_the_bounds_hold_whatever_the_missing_answers_are(drawn: tuple[dict[str, str], dict[str, str]]) -> None:
    whole, known = drawn
    assume(any(set(marks) != {"."} for marks in known.values()))
    report = analyse(table(known))
    missing = any("." in marks for marks in known.values())
    assert bool(report.overall.bounds) == missing
    for k in report.overall.pass_at_k:
        for figure, value in truths(whole, k).items():
            if figure in report.overall.bounds:
                low, high = report.overall.bounds[figure]
                assert low - ROUNDING <= value <= high + ROUNDING, figure
    assert [report.overall.bounds.get(f"pass@{point.k}") for point in report.curve] == [
        point.bounds for point in report.curve
    ]


@given(runs())
def test_the_curve_rests_on_the_same_queries_and_never_falls(drawn: tuple[dict[str, str], dict[str, str]]) -> None:
    _, known = drawn
    report = analyse(table(known))
    points = [point.pass_at_k for point in report.curve]
    assert len({point.count for point in points}) <= 1
    values = [point.value for point in points]
    assert all(before <= after + ROUNDING for before, after in pairwise(values))
    gained = 0.0
    for point in report.curve:
        gained += point.gain.value
        assert point.pass_at_k.value == pytest.approx(gained)
    for before, after in pairwise(report.curve):
        if before.bounds and after.bounds:
            assert (
                before.bounds.low <= after.bounds.low + ROUNDING and before.bounds.high <= after.bounds.high + ROUNDING
            )
    picked = [one for point in report.choosing for one in (point.best_by_score, point.majority) if one is not None]
    assert {one.count for one in picked} <= {point.count for point in points}


def estimates(figures: RunFigures) -> Iterator[Estimate]:
    named = (figures.mean, figures.rate, figures.first, figures.any, figures.best_by_score, figures.majority)
    yield from (one for one in named if one is not None)
    yield from figures.pass_at_k.values()


def shares(text: str) -> Iterator[re.Match[str]]:
    yield from re.finditer(r"[\d.]+ \([\d.]+–[\d.]+\)(?: of (\d+))?", text)


@given(runs())
def test_every_figure_that_is_shown_says_its_population(drawn: tuple[dict[str, str], dict[str, str]]) -> None:
    _, known = drawn
    assume(any(set(marks) != {"."} for marks in known.values()))
    report = analyse(table(known))
    queries = len(known)
    other = {one.count for one in estimates(report.overall)} - {queries}
    by_table = {shown.title: shown for shown in report_tables(report)}
    told = set()
    for title in ("Verification rate", "Queries right when one candidate is picked, %"):
        for cell in by_table[title].rows[-1] if title in by_table else ():
            told |= {int(found[1]) for found in shares(cell) if found[1]}
    assert told <= other
    assert report.overall.rate is not None
    if report.overall.rate.count != queries:
        assert report.overall.rate.count in told
    first, *rest = report_conclusion(report)
    if any("." in marks for marks in known.values()):
        assert "were those without a verdict all wrong or all right" in first
        assert "of all, %" in by_table["Verification rate"].headers
        for sentence in rest:
            if sentence.startswith("At least one of") and report.curve[-1].pass_at_k.count != queries:
                assert f"of the {report.curve[-1].pass_at_k.count} quer" in sentence
                assert "of the queries." not in sentence
    else:
        assert not told and "verdict" not in first
    assert all(line.split(",")[7].isdigit() for line in as_csv(report).splitlines()[1:])


def test_what_is_missing_is_said_everywhere(tmp_path: Path) -> None:
    """200 queries of 3 answers; the right ones are likelier to be lost."""
    known: dict[str, list[float | None]] = {
        f"q{n}": [None if (n + k) % 3 == 0 and n % 2 else float((n * 7 + k) % 5 < 2) for k in range(3)]
        for n in range(200)
    }
    report = analyse(write_run(tmp_path / "run", known))
    last = report.curve[-1]
    assert last.pass_at_k.count < 200 and last.bounds is not None
    said = report_conclusion(report)[1]
    assert said.startswith(f"At least one of {last.k} answers is right for {100 * last.pass_at_k.value:.1f} %")
    assert f"of the {last.pass_at_k.count} queries that have so many verdicts. Of all 200 it would be" in said
    assert f"Every k rests on {last.pass_at_k.count} of 200 queries" in as_markdown(report)
    told = json.loads(as_json(report))
    assert told["overall"]["bounds"][f"pass@{last.k}"] == [*last.bounds]
    assert [point["bounds"] for point in told["curve"]] == [[*point.bounds] for point in report.curve if point.bounds]


@settings(max_examples=5)  # each starts the viewer
@given(runs())
def test_the_viewer_is_told_the_same(drawn: tuple[dict[str, str], dict[str, str]]) -> None:
    pytest.importorskip("duckdb")
    from tests.viewer.browser import browsing

    scores = {"1": 1.0, "0": 0.0, ".": None}
    with TemporaryDirectory() as folder:
        run = write_run(
            Path(folder) / "run", {name: [scores[mark] for mark in marks] for name, marks in drawn[1].items()}
        )
        report = analyse(run)
        with browsing(run) as browser:
            page = browser.run()
    same_as(page, report)


def same_as(page: dict[str, Any], report: Report) -> None:
    overall = report.overall
    assert page["card"]["rate_bounds"] == ([*overall.bounds["rate"]] if "rate" in overall.bounds else None)
    for point, told in zip(report.curve, page["curve"], strict=True):
        assert told["estimate"]["count"] == point.pass_at_k.count
        assert told["bounds"] == (None if point.bounds is None else [*point.bounds])
    assert page["card"]["pass_at"] == page["curve"]
