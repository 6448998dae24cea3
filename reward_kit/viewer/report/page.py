# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one file, whose style and script are inside and named by their hashes; nothing else may run.

Every text goes through the template's escaping, so that what a model wrote is shown and never read as HTML.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reward_kit._version import __version__
from reward_kit.analysis.present.conclusions import comparison_conclusion
from reward_kit.analysis.present.report_tables import comparison_tables
from reward_kit.analysis.run_comparison import compare
from reward_kit.storage.files import Draft
from reward_kit.storage.new_files import check_new_file
from reward_kit.utils.clock import now
from reward_kit.viewer.report.contents import RunPart, ShownTable, run_part, shown_table
from reward_kit.viewer.report.drawing import charts
from reward_kit.viewer.report.plain_text import visible

__all__ = ["MOST_RECORDS", "write_report"]

MOST_RECORDS = 2_000
_BUDGET = 1_700_000
"""Bytes of texts in all: with their frames, the file stays below 3 MB."""
_HERE = Path(__file__).parent
_START = b"<!doctype html>"
_GENERATOR = b'<meta name="generator" content="reward-kit '
_HEAD = 4_096
"""Bytes at the start of a report in which it says what wrote it."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    conclusion: tuple[str, ...]
    charts: tuple[Markup, ...]
    tables: tuple[ShownTable, ...]


def write_report(
    paths: Sequence[Path],
    names: Sequence[str | None],
    target: Path,
    *,
    title: str | None = None,
    most: int = MOST_RECORDS,
    pass_threshold: float | None = None,
) -> int:
    """Write the report of these runs into `target`; how many bytes it has. The file appears whole or not at all.

    The file may be an earlier report, and no other: see `check_new_file`.
    """
    check_new_file(target, "--output", "a report", _is_report, beside_a_run=True)
    runs = [
        run_part(
            path, name, most=max(1, most // len(paths)), budget=_BUDGET // len(paths), pass_threshold=pass_threshold
        )
        for path, name in zip(paths, names, strict=True)
    ]
    heading = title or (runs[0].name if len(runs) == 1 else f"{len(runs)} runs compared")
    page = _environment().get_template("page.html.jinja").render(
        title=visible(heading), runs=runs, comparison=_compared(runs) if len(runs) > 1 else None, made=now(),
        version=__version__, style=Markup(_asset("style.css")), script=Markup(_asset("script.js")), policy=_policy(),
    )  # fmt: skip
    content = page.encode("utf-8", "replace")
    with Draft(target, advice="Name another file.") as draft:
        draft.write(content)
    return len(content)


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return head.startswith(_START) and _GENERATOR in head


def _compared(runs: Sequence[RunPart]) -> _Comparison:
    found = compare(*(run.answers for run in runs))
    return _Comparison(
        conclusion=tuple(map(visible, comparison_conclusion(found))),
        charts=tuple(charts([run.report for run in runs])),
        tables=tuple(map(shown_table, comparison_tables(found))),
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _asset(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


def _policy() -> str:
    """What the browser may do with the file: apply this style, run this script, and nothing else."""
    rules: dict[str, Any] = {
        "default-src": "'none'",
        "style-src": _hash("style.css"),
        "script-src": _hash("script.js"),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
