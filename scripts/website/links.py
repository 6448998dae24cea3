# SPDX-License-Identifier: Apache-2.0
"""Reads finished HTML and names what is wrong with it: links that lead nowhere, things loaded from another host."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""What a browser fetches by itself."""
NOT_FETCHED = {"canonical", "next", "prev", "index", "search", "author", "copyright"}
"""Kinds of `<link>` that only say where something is."""
IN_STYLES = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and (target := given.get("href")):
            self.links.append(target)
        for of, name in LOADED:
            if tag == of and (target := given.get(name)) and given.get("rel") not in NOT_FETCHED:
                self.loaded.append(target)


@cache
def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def faults(directory: Path, root: Path) -> list[str]:
    """What is wrong with the pages of `directory`, which is a folder of the site `root`; one line each."""
    found = []
    for file in sorted(directory.rglob("*.html")):
        page, name = _read(file), file.relative_to(root).as_posix()
        found += [f"{name}: {why}" for link in page.links if (why := _fault(link, file, root))]
        for link in page.loaded:
            if _other_host(link):
                found.append(f"{name}: loads {link} from another host")
            elif why := _fault(link, file, root):
                found.append(f"{name}: {why}")
    for file in sorted(directory.rglob("*.css")):
        if IN_STYLES.search(file.read_text(encoding="utf-8")):
            found.append(f"{file.relative_to(root).as_posix()}: loads something from another host")
    return found


def _other_host(link: str) -> bool:
    return link.startswith("//") or urlsplit(link).scheme in {"http", "https"}


def _fault(link: str, file: Path, root: Path) -> str | None:
    """Why a link leads nowhere, or None. Links to other hosts are for their readers to try: nothing is fetched."""
    parts = urlsplit(link)
    if parts.scheme or link.startswith("//"):
        return None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.is_relative_to(root.resolve()):
        return f"{link!r} leads out of the site"
    if not target.is_file():
        return f"{link!r}: there is no such page"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).ids:
        return f"{link!r}: that page has no such place"
    return None
