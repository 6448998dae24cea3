# SPDX-License-Identifier: Apache-2.0
"""Every page of the viewer: what it shows, that its address is enough to see it again, colours, small screens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.look import Look
from tests.browser.pages import PAGES
from tests.browser.serve import Served, serve


def test_the_overview_lists_every_run_with_its_figures(look: Look) -> None:
    look.see("h1", "6 runs")
    line = look.see("tr", "arithmetic_better")
    assert "mock" in line.inner_text()
    assert line.locator("svg.whisker").count() == 1
    told = look.page.evaluate("fetch('/api/runs').then((answer) => answer.json())")
    mean = next(run["mean"]["value"] for run in told["runs"] if run["title"] == "arithmetic_better")
    assert f"{mean:.3f}" in line.inner_text()


def test_the_token_leaves_the_address(look: Look) -> None:
    look.see("h1", "6 runs")
    assert "token" not in look.page.url


def test_runs_chosen_in_the_overview_are_compared(look: Look) -> None:
    look.page.get_by_label("Compare arithmetic", exact=True).check()
    look.page.get_by_label("Compare arithmetic_better").check()
    look.page.get_by_role("button", name="Compare 2 runs").click()
    look.see("h2", "Paired differences")
    assert "/compare?runs=" in look.page.url


def test_the_summary_has_the_figures_of_the_terminal(look: Look) -> None:
    look.go("/runs/{arithmetic}")
    look.see("h1", "arithmetic")
    look.see(".big", "Mean score")
    look.see("h2", "By split")
    look.see("h2", "Metrics")
    look.see("th", "brevity")
    look.see("h2", "Failures")
    look.see("h2", "Tokens, time and cost of a request")
    assert look.find(".chart .bar").count() > 0
    look.page.get_by_text("All figures as the terminal prints them").click()
    assert "480" in look.see(".terminal").inner_text()


def test_a_bar_of_the_histogram_leads_to_its_records(look: Look) -> None:
    look.go("/runs/{arithmetic}")
    look.see(".chart a")
    look.find(".chart a").last.click()
    look.see(".chip", "Score")
    assert "by=record" in look.page.url
    look.see(".grid .verdict.good")
    assert look.find(".grid .verdict.bad").count() == 0


def test_bars_of_right_and_wrong_are_seen_and_lead_to_their_records(look: Look) -> None:
    look.go("/runs/{candidates}")
    look.see(".chart a")
    bars = look.find(".chart a .bar")
    assert bars.count() == 2
    assert all((bars.nth(one).bounding_box() or {"width": 0})["width"] > 10 for one in range(2))
    look.find(".chart a").first.click()
    look.see(".grid .verdict.bad")
    assert look.find(".grid .verdict.good").count() == 0


def test_a_failure_leads_to_its_example(look: Look) -> None:
    look.go("/runs/{arithmetic}")
    look.see("section:has(#failures) .examples a")
    look.find("section:has(#failures) .examples a").first.click()
    look.see(".candidate .trouble", "gives up")


def test_two_runs_are_compared_sample_by_sample(look: Look) -> None:
    look.go("/compare?runs={arithmetic},{arithmetic_better}")
    look.see("h2", "Paired differences")
    assert look.find("tr:has(.whisker .zero)").count() > 0
    look.page.get_by_label("B passes and A does not").click()
    look.see("h3", "B passes and A does not")
    look.find(".flip").first.click()
    look.see("article[aria-label='Answer of B']")
    look.page.get_by_role("button", name="Difference").click()
    look.see(".difference")
    address = look.page.url
    assert "cell=only_b" in address
    assert "open=" in address
    look.page.reload()
    look.see("article[aria-label='Answer of B']")


def test_an_address_that_nothing_has_says_so(look: Look) -> None:
    look.go("/nowhere")
    look.see("h1", "Nothing here")


def test_a_run_that_is_not_there_says_what_to_do(look: Look) -> None:
    look.go("/runs/0000")
    look.see("[role=alert]")
    look.troubles.clear()  # the browser reports the 404


def test_help_opens_and_closes_by_key(look: Look) -> None:
    look.see("h1", "6 runs")
    look.press("?")
    look.see("dialog[open]", "next sample")
    look.press("Escape")
    look.until("() => document.querySelector('dialog[open]') === null")


def test_colours_follow_the_system_and_the_switch(browser: Browser, served: Served) -> None:
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    with Look.open(browser, served, color_scheme="dark") as look:
        look.see("h1", "6 runs")
        dark = look.page.evaluate(ground)
        look.page.get_by_role("button", name="Colours: system").click()
        light = look.page.evaluate(ground)
        assert dark != light
        look.page.reload()
        look.see("h1", "6 runs")
        assert look.page.evaluate(ground) == light
        look.assert_clean()


@pytest.mark.parametrize("name", PAGES)
def test_a_small_screen_scrolls_in_one_direction(browser: Browser, served: Served, name: str) -> None:
    with Look.open(browser, served, viewport={"width": 390, "height": 800}) as look:
        look.go(PAGES[name].path)
        look.see(PAGES[name].there)
        assert look.page.evaluate("() => document.documentElement.scrollWidth") <= 390
        look.assert_clean()


def test_a_small_screen_shows_the_mean_score_beside_the_name(browser: Browser, served: Served) -> None:
    with Look.open(browser, served, viewport={"width": 390, "height": 800}) as look:
        look.see("h1", "6 runs")
        figure = look.page.locator("tr", has=look.page.get_by_role("link", name="arithmetic", exact=True)).locator(
            ".figure:visible >> nth=0"
        )
        box = figure.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
        assert figure.inner_text().startswith("0.592")


def test_a_run_that_was_deleted_says_only_that(browser: Browser, samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "arithmetic", tmp_path / "deleted")
    shutil.copytree(samples / "lake", tmp_path / "kept")
    with serve(tmp_path) as served, Look.open(browser, served) as look:
        look.see("h1", "2 runs")
        shutil.rmtree(tmp_path / "deleted")
        look.go("/runs/{deleted}")
        look.see("[role=alert]", "no longer there")
        # What the page listens to says so, too.
        first = "async (at) => new TextDecoder().decode((await (await fetch(at)).body.getReader().read()).value)"
        assert '"gone":true' in look.page.evaluate(first, f"/api/runs/{served.keys['deleted']}/changes")
        assert "the last that was read" not in look.find("main").inner_text()


def test_a_run_without_results_says_so_and_draws_nothing(browser: Browser, samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "lake", tmp_path / "empty")
    (tmp_path / "empty" / "results.jsonl").write_bytes(b"")
    shutil.copytree(samples / "lake", tmp_path / "empty" / "inside")
    with serve(tmp_path) as served, Look.open(browser, served) as look:
        look.see("h1", "2 runs")
        look.see("td", "nothing yet")
        look.go("/runs/{empty}")
        look.see(".facts", "nothing yet")
        look.see(".note", "There are no results yet.")
        assert look.find(".big, .chart").count() == 0
        look.assert_clean()
