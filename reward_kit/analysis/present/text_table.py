# SPDX-License-Identifier: Apache-2.0
"""A table of text, for whoever draws it: a terminal, Markdown or CSV."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TextTable"]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A titled table. Without headers it is a list of names and what they are."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A sentence under the table."""
    prose: tuple[int, ...] = ()
    """Columns of running text: cut to the terminal's width, and aligned to the left."""
