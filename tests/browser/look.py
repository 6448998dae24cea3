# SPDX-License-Identifier: Apache-2.0
"""A window of the browser that remembers what happened in it: requests, messages, dialogs, faults."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Dialog, Locator, Page

from tests.browser.serve import Served

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = int(os.environ.get("REWARD_KIT_BROWSER_WAIT_MS", "120000"))


def chromium() -> str | None:
    """Where the system's browser is."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@dataclass
class Look:
    """A page and what it did."""

    page: Page
    served: Served
    hosts: set[str] = field(default_factory=set)
    troubles: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def open(cls, browser: Browser, served: Served, **options: Any) -> Iterator[Look]:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        look = cls(page, served)
        page.on("request", lambda request: look.hosts.add(urlsplit(request.url).netloc))
        page.on("console", lambda said: look._heard(said.type, said.text))
        page.on("pageerror", lambda error: look.troubles.append(f"fault: {error}"))
        page.on("dialog", look._asked)
        page.goto(served.address)
        try:
            yield look
        finally:
            context.close()

    def _asked(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.troubles.append(f"{kind}: {text}")

    def go(self, path: str) -> None:
        """Load an address of the page; `{title}` in it stands for the key of that run."""
        for title, key in self.served.keys.items():
            path = path.replace("{" + title + "}", key)
        self.page.goto(self.served.base + path)

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def see(self, selector: str, text: str | None = None) -> Locator:
        """Wait until something is there, with this text in it."""
        found = self.page.locator(selector, has_text=text) if text is not None else self.page.locator(selector)
        found.first.wait_for()
        return found

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, condition: str, argument: Any = None) -> None:
        """Wait until a condition in the page's own language holds."""
        self.page.wait_for_function(condition, arg=argument)

    def assert_clean(self) -> None:
        """No fault, no dialog, nothing that the page's policy forbade, no request to anybody else."""
        assert self.troubles == []
        assert self.hosts == {urlsplit(self.served.base).netloc}
