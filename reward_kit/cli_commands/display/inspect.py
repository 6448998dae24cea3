# SPDX-License-Identifier: Apache-2.0
"""What `reward-kit inspect` prints for people: tables as wide as the terminal, and the curve."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from reward_kit.analysis.present.charts import curve_chart
from reward_kit.analysis.present.conclusions import comparison_conclusion, report_conclusion
from reward_kit.analysis.present.one_query import CandidateView, QueryView
from reward_kit.analysis.present.report_tables import CURVE_TITLE, comparison_tables, report_tables
from reward_kit.analysis.present.terminal_chart import draw_chart
from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.report import Report
from reward_kit.analysis.run_comparison import RunComparison
from reward_kit.analysis.texts import one_line
from reward_kit.cli_commands.output import make_console

__all__ = ["InspectDisplay"]

_PIPED_WIDTH = 120
"""Columns where nobody's terminal says how many there are."""
_EXCERPT = 20
"""Characters of a query that are always shown."""
_COLUMN = 36
"""A candidate's answer needs so many characters to be readable beside another."""
_PLAIN = str.maketrans(
    {"–": "-", "−": "-", "…": "...", "│": "|", "┤": "+", "└": "+", "─": "-", "●": "*", "→": "->", "·": "-", "█": "#"}
)
"""What a terminal that cannot show a character gets instead."""


class InspectDisplay:
    """Prints on standard output: what is shown is the command's product."""

    def __init__(self, *, color: bool) -> None:
        """Without `color`, and where output is piped, the text is plain."""
        self._console = make_console(
            file=sys.stdout, highlight=False, no_color=not color, force_terminal=None if color else False
        )
        if not self._console.is_terminal and self._console.width < _PIPED_WIDTH and "COLUMNS" not in os.environ:
            self._console.width = _PIPED_WIDTH
        self._plain = not self._console.encoding.casefold().startswith("utf")

    def show_report(self, report: Report, *, full: bool) -> None:
        """Print what one experiment found, then the tables; all of them with `full`."""
        self._conclusion(report.name, report_conclusion(report))
        for table in report_tables(report, full=full):
            self._table(table)
            if full and table.title == CURVE_TITLE:
                self._curve(report)
        self._hint(full=full)

    def show_comparison(self, comparison: RunComparison, *, full: bool) -> None:
        """Print which is better, then experiments side by side and in pairs."""
        self._conclusion("", comparison_conclusion(comparison))
        for table in comparison_tables(comparison, full=full):
            self._table(table)
        if len(comparison.pairings) > 1:
            self._hint(full=full)

    def _conclusion(self, name: str, sentences: Sequence[str]) -> None:
        if name:
            self._line(name, "dim")
        for number, sentence in enumerate(sentences):
            self._line(sentence, "bold" if not number else "")

    def _hint(self, *, full: bool) -> None:
        if not full:
            self._console.print()
            self._line("--full shows all tables, --format json all figures.", "dim")

    def show_query(self, name: str, query: QueryView) -> None:
        """Print one query with its candidates side by side."""
        self._line(f"{name} · {query.split} · {query.query_id} · {query.verified} of {query.judged} verified", "bold")
        self._line(query.query)
        if query.ground_truth:
            self._line(f"Right answer: {query.ground_truth}", "dim")
        side = max(1, self._console.width // _COLUMN)
        for start in range(0, len(query.candidates), side):
            self._beside(query.candidates[start : start + side])

    def _beside(self, candidates: Sequence[CandidateView]) -> None:
        table = RichTable(box=box.SIMPLE if not self._plain else box.ASCII, padding=(0, 1), expand=True)
        for candidate in candidates:
            style = {True: "green", False: "red", None: "yellow"}[candidate.is_verified]
            table.add_column(Text(self._shown(candidate.heading), style=style), ratio=1, overflow="fold")
        table.add_row(*(Text(self._shown(candidate.answer_and_reason)) for candidate in candidates))
        self._console.print(table)

    def _curve(self, report: Report) -> None:
        drawn = draw_chart(curve_chart(report), width=min(self._console.width - 2, 90))
        if drawn:
            self._console.print()
            self._line(drawn)

    def _table(self, table: TextTable) -> None:
        self._console.print()
        if table.title:
            self._line(table.title, "bold")
        self._console.print(self._rich(table))
        if table.note:
            self._line(table.note, "dim")

    def _rich(self, table: TextTable) -> RichTable:
        table = self._cut(table)
        rich = RichTable(
            box=None, padding=(0, 1, 0, 0), show_header=bool(table.headers), header_style="dim", pad_edge=False
        )
        for column in range(len(table.rows[0])):
            header = table.headers[column] if table.headers else ""
            left = column in table.prose or not column or not table.headers
            rich.add_column(self._shown(header), justify="left" if left else "right", overflow="fold")
        for row in table.rows:
            rich.add_row(*(Text(self._shown(cell)) for cell in row))
        return rich

    def _cut(self, table: TextTable) -> TextTable:
        """Shorten the excerpts in the last column to the room that the other columns leave."""
        last = len(table.headers) - 1
        if last not in table.prose or last < 1:
            return table
        others = [max(len(row[column]) for row in (table.headers, *table.rows)) + 1 for column in range(last)]
        room = max(_EXCERPT, self._console.width - sum(others))
        rows = tuple((*row[:last], one_line(row[last], room)) for row in table.rows)
        return replace(table, rows=rows)

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(self._shown(text), style=style))

    def _shown(self, text: str) -> str:
        return text.translate(_PLAIN) if self._plain else text
