"""A table of words, ready to be printed: what the terminal, Markdown and the tests have in common."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table. Without headers it is a list of names and what they are."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """A sentence under the table."""
    prose: tuple[int, ...] = ()
    """Columns of running text: cut to the terminal's width, and aligned to the left."""
