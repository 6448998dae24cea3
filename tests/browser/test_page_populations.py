# SPDX-License-Identifier: Apache-2.0
"""What a figure rests on, and which samples of two runs are not the same, stands on the page beside the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.analysis.experiments import write_run
from tests.browser.look import Look
from tests.browser.serve import serve


def with_reward(run: Path, source: str) -> None:
    results = {"digest": source, "settings": {"reward.source": source}}
    (run / "manifest.json").write_text(json.dumps({"digests": {"results": results}}))


@pytest.fixture(scope="module")
def window(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Look]:
    folder = tmp_path_factory.mktemp("populations")
    lacking: dict[str, list[float | None]] = {
        f"q{n}": [None if (n + k) % 3 == 0 and n % 2 else float((n * 7 + k) % 5 < 2) for k in range(3)]
        for n in range(60)
    }
    whole: dict[str, list[float | None]] = {name: [1.0, 0.0, 1.0] for name in lacking}
    write_run(folder / "lacking", lacking)
    other = write_run(folder / "other", whole, user_query=lambda name, _: "?" if name < "q2" else f"What is {name}?")
    with_reward(folder / "lacking", "one")
    with_reward(other, "two")
    write_run(folder / "strange", whole, user_query="?")
    with serve(folder) as served, Look.open(browser, served) as look:
        yield look
        look.assert_clean()


def test_a_figure_says_on_how_many_samples_it_rests(window: Look) -> None:
    window.go("/")
    line = window.see("tr", "lacking")
    line.locator(".population", has_text="of 30 of 60 samples; of all").first.wait_for()
    window.go("/runs/{lacking}")
    window.see("figcaption .population", "of 30 of 60 samples; of all")
    window.see(".big .population", "of 30 of 60 samples; of all")
    window.go("/runs/{other}")
    window.see("figcaption")
    assert window.find(".big .population").count() == window.find("figcaption .population").count() == 0


def test_samples_that_are_not_the_same_are_counted_before_the_figures(window: Look) -> None:
    window.go("/compare?runs={lacking},{other},{strange}&cell=all")
    window.see(".note", "48 of 60 samples are the same in both; 12 have the same id but another question")
    window.see(".note", "were judged by different rewards (they differ in: reward.source)")
    window.see(".facts", "12 left out: not the same in both")
    window.see("h2", "Paired differences")
    window.see(".flip")
    assert window.find(".tone.good, .tone.bad").count() == 0
    window.page.get_by_role("link", name="A and C").click()
    window.see(".note", "0 of 60 samples are the same in both")
    assert window.find("#differences, #flips").count() == 0
