# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation as tests read them: fenced blocks, by page or by section, and how they are run.

A block's info string may carry `file=NAME`: its text belongs into that file. A block that cannot run here has
`<!-- not run: reason -->` on the line before it, and a command that ends otherwise than with 0 `<!-- exit code: N -->`.
From a block with `<!-- needs: a sandbox -->` on, a page is only followed where sandboxes work.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ENDPOINT = "http://localhost:8000/v1"
"""Where the pages ask a model; a test puts its own server there."""
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]+) -->\n)?```(?P<info>[^\n]*)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
SHOWN_ONLY = {"", "text", "console", "pycon"}
"""What these blocks hold is output, a drawing, or a docstring's example that is run with the docstring."""


class Block(NamedTuple):
    language: str
    file: str | None
    text: str
    line: int
    exit_code: int = 0
    needs: str | None = None


def blocks(content: str) -> Iterator[Block]:
    """The blocks of a page that are written to files or run, in their order."""
    for match in BLOCK.finditer(content):
        language, _, rest = match["info"].strip().partition(" ")
        mark = match["mark"] or ""
        if mark.startswith("not run: ") or language in SHOWN_ONLY:
            continue
        file = rest.removeprefix("file=") if rest.startswith("file=") else None
        code = int(mark.removeprefix("exit code: ")) if mark.startswith("exit code: ") else 0
        needs = mark.removeprefix("needs: ") if mark.startswith("needs: ") else None
        yield Block(language, file, match["text"], content.count("\n", 0, match.start("text")) + 1, code, needs)


def section(page: Path, heading: str) -> str:
    """What stands under a heading of the second level."""
    _, found, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading!r}"
    return rest.split("\n## ", 1)[0]


def headings(page: Path) -> list[str]:
    """The headings of the second level."""
    return re.findall(r"^## (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)


TASKS = ROOT / "docs" / "tasks.md"


def tasks() -> dict[str, tuple[Path, str | None]]:
    """What a newcomer wants, as docs/tasks.md has it: the page that answers it and, where it is one, the section."""
    rows = re.findall(r"^\| ([^|]+) \| \[[^\]]+\]\(([^)#]+)(?:#([^)]+))?\) \|", TASKS.read_text(), re.MULTILINE)
    found: dict[str, tuple[Path, str | None]] = {}
    for task, file, anchor in rows:
        page = TASKS.parent / file
        found[task] = (page, next(name for name in headings(page) if anchor_of(name) == anchor) if anchor else None)
    return found


def anchor_of(heading: str) -> str:
    """The anchor that a heading has where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def whole_pages() -> list[Path]:
    """Pages that answer a task from beginning to end."""
    return [page for page, heading in tasks().values() if heading is None]


PROGRAMS = Path(sys.executable).parent
"""The commands of this environment."""


def run_program(*arguments: str, directory: Path, programs: Path = PROGRAMS) -> subprocess.CompletedProcess[str]:
    """Run a program in a directory, with an environment's commands on the PATH: this one's, or another's."""
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return subprocess.run(
        arguments, cwd=directory, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=110,
        check=False,
    )  # fmt: skip


class Said(NamedTuple):
    """What one command of a page wrote."""

    command: str
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams, with single spaces, wherever a line was wrapped."""
        return " ".join(f"{self.out}\n{self.err}".split())


@dataclass
class Reader:
    """Somebody who does what the sections of a page say, in one directory."""

    page: Path
    directory: Path
    endpoint: str = ENDPOINT
    said: list[Said] = field(default_factory=list)
    programs: Path = PROGRAMS
    """Whose `reward-kit` and `python` are meant."""

    def follow(self, heading: str | None) -> None:
        """Write the files of a section, or of the whole page, and run the blocks, as they stand."""
        text_of_all = self.page.read_text(encoding="utf-8") if heading is None else section(self.page, heading)
        for block in blocks(text_of_all):
            text = block.text.replace(ENDPOINT, self.endpoint)
            if block.file is not None:
                (self.directory / block.file).write_text(text, encoding="utf-8")
            elif block.language == "python":
                (self.directory / "block.py").write_text(text, encoding="utf-8")
                done = run_program("python", "block.py", directory=self.directory, programs=self.programs)
                self._ran(done, text, block)
            else:
                assert block.language == "sh", f"{heading}: nobody runs {block.language!r}"
                self.type(text, block.exit_code)

    def type(self, commands: str, exit_code: int = 0) -> Said:
        """Run lines of the shell; the last one ends with `exit_code`. What the last one wrote."""
        lines = [line for line in commands.splitlines() if line.strip()]
        noted = [f"{{ {line}\n}} >.out{number} 2>.err{number}" for number, line in enumerate(lines)]
        done = run_program(
            "bash", "-euo", "pipefail", "-c", "\n".join(noted), directory=self.directory, programs=self.programs
        )
        wrote = [[self.directory / f".{stream}{number}" for stream in ("out", "err")] for number in range(len(lines))]
        for line, (out, err) in zip(lines, wrote, strict=True):
            if out.exists() and err.exists():
                self.said.append(Said(line.split("#")[0].strip(), out.read_text(), err.read_text()))
                out.unlink()
                err.unlink()
        assert done.returncode == exit_code, f"exit code {done.returncode}\n{self.said[-1]}"
        return self.said[-1]

    def _ran(self, done: subprocess.CompletedProcess[str], text: str, block: Block) -> None:
        self.said.append(Said(text, done.stdout, done.stderr))
        assert done.returncode == block.exit_code, done.stdout + done.stderr

    def heard(self, start: str) -> Said:
        """What the last command that begins so wrote."""
        return next(said for said in reversed(self.said) if said.command.startswith(start))
