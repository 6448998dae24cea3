# SPDX-License-Identifier: Apache-2.0
"""The table of the viewer: order, filters, search, the keyboard, and a million records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.look import Look
from tests.browser.serve import Served

LINES = ".grid .body .line"


ALL_OF_A_COLUMN = """([place, holds]) => {
    const cells = [...document.querySelectorAll(`.grid .body .line > .cell:nth-child(${place})`)];
    return cells.length > 0 && cells.every((cell) => (holds === "ones") === (Number(cell.textContent || 1) === 1));
}"""
"""Whether all scores in sight are ones, or none of them is."""


def place_of(look: Look, name: str) -> int:
    """Which column it is, counted from 1."""
    heads = look.find(".grid [role=columnheader]").all_inner_texts()
    return next(nth for nth, head in enumerate(heads, 1) if head.strip().startswith(name))


def column(look: Look, name: str) -> list[str]:
    """What is in sight of a column."""
    found = look.find(f"{LINES} > .cell:nth-child({place_of(look, name)})")
    return [text.strip() for text in found.all_inner_texts()]


def test_a_click_on_a_heading_sorts_and_the_address_keeps_it(look: Look) -> None:
    look.go("/runs/{arithmetic}/table?by=record")
    look.see(f"{LINES} a")
    look.page.get_by_role("button", name="Score", exact=True).click()
    look.see("[aria-sort=descending]")
    look.until("() => document.querySelector('.total').textContent.includes('480')")
    look.until(ALL_OF_A_COLUMN, [place_of(look, "Score"), "ones"])
    look.page.get_by_role("button", name="Score", exact=True).click()
    look.see("[aria-sort=ascending]")
    look.until(ALL_OF_A_COLUMN, [place_of(look, "Score"), "others"])
    assert "sort=score" in look.page.url
    look.page.reload()
    look.see("[aria-sort=ascending]")
    look.page.go_back()
    look.see("[aria-sort=descending]")


def test_filters_are_added_and_removed(look: Look) -> None:
    look.go("/runs/{arithmetic}/table")
    look.see(".total", "120 samples")
    look.page.get_by_role("button", name="Filter", exact=True).click()
    look.page.get_by_label("Column", exact=True).select_option("data.operation")
    look.page.get_by_label("Condition").select_option("eq")
    box = look.page.get_by_label("Value", exact=True)
    if box.evaluate("(box) => box.tagName") == "SELECT":
        box.select_option("addition")
    else:
        box.fill("addition")
    look.page.get_by_role("button", name="Add").click()
    look.see(".total", "40 samples")
    assert "where=data.operation%3Aeq%3Aaddition" in look.page.url
    look.page.reload()
    look.see(".total", "40 samples")
    look.page.get_by_role("button", name="Remove the filter").click()
    look.see(".total", "120 samples")


def test_an_answer_that_breaks_off_is_a_problem_that_can_be_tried_again(look: Look) -> None:
    half = '{"rows": [{"id": '
    look.page.route("**/rows?*", lambda route: route.fulfill(content_type="application/json", body=half), times=1)
    look.go("/runs/{arithmetic}/table?by=record")
    look.see(".problem", "The server does not answer")
    look.find(".problem button").click()
    look.see(".total", "480 records")


def test_only_disagreeing_samples(look: Look) -> None:
    look.go("/runs/{arithmetic}/table")
    look.see(".total", "120 samples")
    look.page.get_by_role("button", name="Disagreeing").click()
    look.see("[aria-pressed=true].toggle")
    look.until("() => /^(?!120)\\d+ samples/.test(document.querySelector('.total').textContent)")
    rates = {float(rate) for rate in column(look, "Pass rate")}
    assert rates
    assert rates.isdisjoint({0.0, 1.0})


def test_a_search_finds_texts(look: Look) -> None:
    look.go("/runs/{arithmetic}/table?by=record")
    look.see(f"{LINES} a")
    look.press("/")
    look.page.keyboard.type("It prints")
    look.press("Enter")
    look.see(".total", "120 records")
    assert "q=It+prints" in look.page.url
    assert all("It prints" in text or "```python" in text for text in column(look, "Answer"))
    look.find("input[type=search]").fill("")
    look.see(".total", "480 records")


def test_columns_are_chosen(look: Look) -> None:
    look.go("/runs/{arithmetic}/table")
    look.see(f"{LINES} a")
    look.page.get_by_text("Columns", exact=True).click()
    look.page.get_by_label("difficulty").check()
    look.see("[role=columnheader]", "difficulty")
    look.page.reload()
    look.see("[role=columnheader]", "difficulty")


def test_the_keyboard_walks_and_opens_and_comes_back(look: Look) -> None:
    look.go("/runs/{arithmetic}/table")
    look.see(f"{LINES} a")
    look.press("j", "ArrowDown", "j", "k")
    look.see(f"{LINES}.chosen", "q002")
    look.press("Enter")
    look.see("h1", "q002")
    look.press("Escape")
    look.see(f"{LINES}.chosen", "q002")


def test_a_click_opens_and_the_back_button_returns(look: Look) -> None:
    look.go("/runs/{arithmetic}/table?sort=-score")
    look.see(f"{LINES} a")
    look.find(LINES).nth(3).click()
    look.see(".candidate")
    look.see(".position", "4 of 120")
    look.page.go_back()
    look.see(f"{LINES}.chosen")


# ── a million records ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def million(browser: Browser, large: Served) -> Iterator[Look]:
    with Look.open(browser, large) as look:
        look.go("/runs/{million}/table?by=record")
        look.see(".total", "1,000,000 records")
        look.see(f"{LINES} a")
        yield look
        look.assert_clean()


def test_a_million_rows_scroll_to_the_end_and_back(million: Look) -> None:
    million.find(".grid").focus()
    million.press("End")
    million.see(f"{LINES}.chosen", "s249999")
    assert million.find(LINES).count() < 100
    million.press("k")
    million.see(f"{LINES}.chosen", "s249999")
    million.press("Home")
    million.see(f"{LINES}.chosen", "s000000")


def test_the_bar_jumps_and_the_wheel_leaves_no_row_out(million: Look) -> None:
    million.page.evaluate(
        "() => { const box = document.querySelector('.grid'); box.scrollTop = box.scrollHeight / 2; }"
    )
    million.until("() => /s12\\d{4}/.test(document.querySelector('.grid .body').textContent)")
    seen = []
    million.find(".grid").hover()
    for _ in range(8):
        seen += million.page.evaluate(
            "() => [...document.querySelectorAll('.grid .body .line')].map((line) => Number(line.ariaRowIndex))"
        )
        before = million.find(LINES).first.get_attribute("aria-rowindex")
        million.page.mouse.wheel(0, 300)
        million.until(f"(before) => document.querySelector('{LINES}').getAttribute('aria-rowindex') !== before", before)
    rows = sorted(set(seen))
    assert rows == list(range(rows[0], rows[-1] + 1))
    million.until("() => [...document.querySelectorAll('.grid .body .line')].every((line) => line.textContent !== '')")


def test_a_needle_is_found_in_a_million_records(million: Look) -> None:
    million.find("input[type=search]").fill("needle")
    million.press("Enter")
    million.see(f"{LINES}", "needle")
    million.see(".total", "1 record")
    million.find(LINES).first.click()
    million.see("h1", "s194444")


CANCEL_AT_ONCE = """() => {
    const watch = new MutationObserver(() => {
        const button = document.querySelector(".progress button");
        if (button?.textContent === "Cancel") button.click();
    });
    watch.observe(document.body, { childList: true, subtree: true });
    window.letItSearch = () => watch.disconnect();
}"""
"""In the page itself, since a search may be over before a click from outside arrives."""


def test_a_search_is_cancelled_and_begun_again(million: Look) -> None:
    million.page.evaluate(CANCEL_AT_ONCE)
    million.find("input[type=search]").fill("Answer 9")
    million.press("Enter")
    million.see(".progress", "Stopped")
    million.page.evaluate("() => window.letItSearch()")
    million.find(".progress button").click()
    million.until("() => !document.querySelector('.progress')")
    million.see(".total", "records")
    million.see(LINES, "Answer 9")
