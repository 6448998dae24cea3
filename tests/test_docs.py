# SPDX-License-Identifier: Apache-2.0
"""Every code block of the README and the docs is run, or says why not; the generated pages are up to date.

A block that names a file is written there. Other `python` blocks are executed, in order, in one namespace per page;
`sh` blocks are run by bash. A page's blocks share a fresh directory. `tests/doc_pages.py` says how blocks are marked.
The READMEs of the examples are followed by `tests/examples/test_readmes.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.doc_pages import ROOT, blocks, run_program, whole_pages
from tests.execution.shell_support import require_namespaces

MODULE = re.compile(r"(?<![*\w])\w+\.py\b")
LARGE_ROOM = 8
"""Modules that a room may have without each being on the map."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
BY_SECTION = ROOT / "docs" / "recipes.md"
"""Followed section by section, each in a directory of its own, by tests/first_hour."""
ELSEWHERE = {BY_SECTION, *whole_pages()}
"""With the pages that tests/first_hour/test_tasks.py follows from beginning to end, in a fresh environment."""
FOLLOWED_HERE = [page for page in PAGES if page not in ELSEWHERE and not page.is_relative_to(ROOT / "examples")]


@pytest.mark.parametrize("page", FOLLOWED_HERE, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.needs is not None:
            assert block.needs == "a sandbox", f"{page}:{block.line} needs {block.needs!r}, which nobody looks for"
            require_namespaces()
        if block.file is not None:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
        elif block.language == "sh":
            done = run_program("bash", "-euo", "pipefail", "-c", block.text, directory=tmp_path)
            assert done.returncode == block.exit_code, done.stdout + done.stderr
        else:
            pytest.fail(f"{page}:{block.line} shows {block.language!r}: name a file for it, or mark it as not run")
    forget_modules(tmp_path)


def forget_modules(directory: Path) -> None:
    """A page's own modules end with it: the next may have others of the same names."""
    for name, module in list(sys.modules.items()):
        if str(directory) in str(vars(module).get("__file__")):
            del sys.modules[name]


def test_the_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
    broken = [
        f"{page.relative_to(ROOT)} → {target}"
        for page in PAGES
        for target in link.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_files_that_the_map_names_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## Where is", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "?" in line]
    named = [re.findall(r"`(reward_kit/[\w/.]+)`", row) for row in rows]
    assert len(named) >= 20 and all(len(files) == 1 for files in named), "one file answers each question"
    assert [file for (file,) in named if not (ROOT / file).is_file()] == []


def the_map() -> str:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return page.split("## Rooms", 1)[1].split("\n## ", 1)[0]


def test_the_map_names_no_module_that_does_not_exist() -> None:
    modules = {path.name for path in (ROOT / "reward_kit").rglob("*.py")}
    assert [name for name in MODULE.findall(the_map()) if name not in modules] == []


def test_the_map_names_every_module_of_a_large_room() -> None:
    named = set(MODULE.findall(the_map()))
    rooms = {path.parent for path in (ROOT / "reward_kit").rglob("*.py") if "templates" not in path.parts}
    modules = {room: [path for path in room.glob("*.py") if not path.name.startswith("__")] for room in rooms}
    missing = [
        str(path.relative_to(ROOT))
        for those in modules.values()
        for path in those
        if len(those) > LARGE_ROOM and path.name not in named and not path.name.endswith(("_cmd.py", "_version.py"))
    ]
    assert missing == [], "docs/architecture.md: say in a few words what these modules are"
