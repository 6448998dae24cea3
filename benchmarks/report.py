# SPDX-License-Identifier: Apache-2.0
"""What a benchmark reports: rows of a measured figure, its goal and whether it was met; as text or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Report", "Row", "as_markdown", "as_text"]


class Row(NamedTuple):
    """One measured figure. Ratios compare two measurements of the same run, so they travel between machines."""

    what: str
    value: float
    context: str
    """The absolute numbers the figure was made of."""
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "×"

    @property
    def goal(self) -> str:
        """The goal in words; empty where the row is there for comparison only."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g} {self.unit}"
        return "" if self.at_most is None else f"≤ {self.at_most:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """Whether the goal was reached."""
        if not self.goal:
            return ""
        low = self.at_least is not None and self.value < self.at_least
        high = self.at_most is not None and self.value > self.at_most
        return "miss" if low or high else "pass"

    @property
    def measured(self) -> str:
        """The figure with its unit."""
        digits = 2 if self.value < 20 else 0
        return f"{self.value:.{digits}f} {self.unit}"


class Report(NamedTuple):
    """What one benchmark found."""

    name: str
    question: str
    """What is measured, in one sentence."""
    rows: Sequence[Row]


def as_text(report: Report) -> str:
    """The report as a table for a terminal."""
    cells = [("", "measured", "goal", "", "in numbers")]
    cells += [(row.what, row.measured, row.goal, row.verdict, row.context) for row in report.rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = [
        f"  {what:<{widths[0]}}  {measured:>{widths[1]}}  {goal:>{widths[2]}}  {verdict:<{widths[3]}}  {context}"
        for what, measured, goal, verdict, context in cells
    ]
    return "\n".join([f"{report.name}: {report.question}", *(line.rstrip() for line in lines), ""])


def as_markdown(reports: Sequence[Report]) -> str:
    """All reports as one Markdown table."""
    lines = ["| benchmark | | measured | goal | | in numbers |", "|---|---|---|---|---|---|"]
    for report in reports:
        lines += [
            f"| `{report.name}` | {row.what} | {row.measured} | {row.goal} | {row.verdict} | {row.context} |"
            for row in report.rows
        ]
    return "\n".join(lines)
