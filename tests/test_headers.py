# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first line, or in the second, below a line that names its interpreter."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("reward_kit", "scripts", "benchmarks", "examples", "tests")
TEMPLATES = ROOT / "reward_kit" / "cli_commands" / "templates"
WITHOUT = {
    **{
        str(path.relative_to(ROOT)): "`reward-kit init` copies it: it is the user's" for path in TEMPLATES.rglob("*.py")
    },
    "tests/golden/inputs/lab.py": "the golden directories hold a digest of its bytes",
}


def sources() -> Iterator[Path]:
    yield ROOT / ".ci" / "run"
    for folder in FOLDERS:
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".sh"})


def has_header(text: str, header: str) -> bool:
    lines = text.splitlines()
    return lines[1:2] == [header] if text.startswith("#!") else lines[:1] == [header]


def test_every_source_file_names_the_licence_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    header = f"# SPDX-License-Identifier: {project['license']}"
    files = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sources()}
    missing = sorted(name for name, text in files.items() if not has_header(text, header) and name not in WITHOUT)
    assert missing == [], f"write {header!r} above everything else in these files"
    assert [name for name in WITHOUT if name not in files or has_header(files[name], header)] == []
