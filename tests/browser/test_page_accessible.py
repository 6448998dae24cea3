# SPDX-License-Identifier: Apache-2.0
"""Whether people can use the page who do not see it, or not well: by a checker, in light and dark, and by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.look import Look
from tests.browser.pages import PAGES
from tests.browser.serve import Served

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def violations(look: Look) -> list[str]:
    """What the checker finds that is serious or worse."""
    look.page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = look.page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.skipif(not AXE.is_file(), reason="the checker axe-core is not there (make web)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault(browser: Browser, served: Served, scheme: str) -> None:
    # The page's policy would keep the checker out: it is let past, in this test only.
    with Look.open(browser, served, color_scheme=scheme, bypass_csp=True) as look:
        found = {}
        for name, place in PAGES.items():
            look.go(place.path)
            look.see(place.there)
            if faults := violations(look):
                found[name] = faults
        assert found == {}


def test_the_checker_finds_a_fault(browser: Browser, served: Served) -> None:
    if not AXE.is_file():
        pytest.skip("the checker axe-core is not there (make web)")
    with Look.open(browser, served, bypass_csp=True) as look:
        look.see("h1", "6 runs")
        look.page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")
        assert any("button-name" in fault for fault in violations(look))


def test_tab_reaches_the_content_first(look: Look) -> None:
    look.see("h1", "6 runs")
    look.press("Tab")
    assert look.page.evaluate("() => document.activeElement.textContent.trim()") == "Skip to the content"
    look.press("Enter", "Tab")
    assert look.page.evaluate("() => document.querySelector('main').contains(document.activeElement)")
