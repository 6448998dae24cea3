# SPDX-License-Identifier: Apache-2.0
"""docs/migrating.md: every line of its tables names a test that exists, and the table of keys is that of the code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from reward_kit.inherited_config import KEYS
from tests.doc_pages import ROOT

PAGE = ROOT / "docs" / "migrating.md"
NAMED = re.compile(r"<!-- test: (?P<file>tests/[\w/]+\.py)::(?P<test>test_\w+) --> \|$")


def rows() -> list[tuple[int, str]]:
    """The lines of all tables, with their numbers, without headings."""
    lines = list(enumerate(PAGE.read_text(encoding="utf-8").splitlines(), start=1))
    rulers = {number for number, line in lines if re.fullmatch(r"\|(?:-+\|)+", line)}
    headings = {number - 1 for number in rulers}
    return [(number, line) for number, line in lines if line.startswith("|") and number not in rulers | headings]


@cache
def functions_of(file: str) -> dict[str, ast.AST]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_there_are_lines() -> None:
    assert len(rows()) > 80


@pytest.mark.parametrize(("number", "line"), rows(), ids=[f"line {number}" for number, _ in rows()])
def test_each_line_names_the_test_that_runs_it(number: int, line: str) -> None:
    cells = line.strip("|").split(" | ")
    assert len(cells) == 3 and cells[0].strip() and cells[1].strip(), "what you have, what happens now, why"
    named = NAMED.search(line)
    assert named is not None, f"docs/migrating.md:{number} names no test. End the line with <!-- test: FILE::NAME --> |"
    assert (ROOT / named["file"]).is_file(), named["file"]
    assert named["test"] in functions_of(named["file"]), f"{named['file']} has no {named['test']}"


def test_every_key_of_the_table_has_its_line() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [key.path for key in KEYS if f"| `{key.path}` |" not in page] == []


def test_those_who_need_the_page_find_it() -> None:
    for page in ("README.md", "docs/quickstart.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert "migrating.md" in text, page
    installing = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Installing from the source\n")[2]
    assert "pip install ." in installing.partition("\n## ")[0]
