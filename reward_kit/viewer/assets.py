# SPDX-License-Identifier: Apache-2.0
"""The page's own files, as the build left them in `static/`: read once, served from memory, nothing else reachable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Asset", "Assets"]

_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
    ".json": "application/json", ".txt": "text/plain; charset=utf-8", ".map": "application/json",
}  # fmt: skip
_HASHED = re.compile(r"[.-][0-9A-Za-z_]{8,}\.\w+$")
"""A name with a digest in it: what it holds never changes."""
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>reward-kit</title>
<h1>The page is not built</h1>
<p>This copy of reward-kit comes without the viewer's page. In a checkout, run <code>make web</code> and load this page
again. An installed wheel has it: install the wheel instead.</p></html>
"""


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    type: str
    forever: bool
    """Whether its name changes when it does."""


class Assets:
    """All files of the page."""

    def __init__(self, folder: Path | None = None) -> None:
        """Find the files; they are read when they are asked for, and again after a new build."""
        self._folder = (folder or Path(__file__).parent / "static").resolve()
        self._known: dict[str, tuple[int, Asset]] = {}

    def page(self) -> Asset:
        """The page itself, or how to build it."""
        return self.get("index.html") or Asset(_MISSING.encode(), _TYPES[".html"], forever=False)

    def get(self, name: str) -> Asset | None:
        """The file of this name; None where there is none."""
        path = self._folder / name
        kind = _TYPES.get(path.suffix)
        if kind is None or any(part.startswith(".") for part in Path(name).parts):
            return None
        try:
            if path.resolve() != path or self._folder not in path.parents:
                return None  # a way out, or a link
            changed = path.stat().st_mtime_ns
            known = self._known.get(name)
            if known is None or known[0] != changed:
                known = changed, Asset(path.read_bytes(), kind, forever=bool(_HASHED.search(name)))
                self._known[name] = known
        except (OSError, ValueError):  # ValueError: a NUL in the name
            return None
        return known[1]
