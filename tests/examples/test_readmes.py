# SPDX-License-Identifier: Apache-2.0
"""The README of every example is followed as it stands: its commands work, and print what it says they print.

A `text` block with `<!-- printed -->` before it holds lines that the `sh` block before it printed, in their order;
blanks do not count, and of a line only what stands there has to be found. A block with
`<!-- needs: a key of Fireworks -->` is run against servers of ours: the fake of Fireworks' API, and a mock endpoint
that answers with the example's `mock_model.py`.

A new process for each command would take most of the time, so commands are called in this process. Blocks that need a
shell, and all blocks of the READMEs in `BY_A_SHELL`, are given to bash as they stand.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from reward_kit.cli import main
from reward_kit.testing import MockServer
from tests.deploy.fireworks.fake import KEY, fake_fireworks
from tests.doc_pages import PROGRAMS, ROOT, blocks, run_program
from tests.execution.shell_support import require_namespaces
from tests.test_docs import forget_modules

READMES = sorted((ROOT / "examples").rglob("README.md"))
FIREWORKS_MODEL = "accounts/fireworks/models/qwen3-8b"
NOT_OURS = shutil.ignore_patterns("__pycache__", "outputs", ".reward_kit_cache", "evaluation_results")
BY_A_SHELL = ("judge_example",)
SHELL_SIGNS = frozenset("|&;<>()$*?[]#~`")
PRINTED = re.compile(r"<!-- printed -->\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", READMES, ids=lambda page: str(page.parent.relative_to(ROOT)))
def test_what_a_readme_says_holds(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # a worker for each core is started for every run
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=NOT_OURS)  # some commands write beside it
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    namespace: dict[str, Any] = {"__name__": "page"}
    with ExitStack() as servers:
        printed = ""
        for text, expected in parts(page):
            for block in blocks(text):
                if block.needs == "a sandbox":
                    require_namespaces()
                elif block.needs == "a key of Fireworks":
                    servers.enter_context(as_fireworks(page.parent, monkeypatch))
                elif block.needs is not None:
                    pytest.fail(f"{page} needs {block.needs!r}, which nobody looks for")
                if block.language == "python":
                    exec(compile(block.text, str(page), "exec"), namespace)
                    continue
                assert block.language == "sh", f"{page} shows {block.language!r}: mark it as not run"
                code, said = typed(block.text, tmp_path, capfd, by_a_shell=page.parent.name in BY_A_SHELL)
                assert code == block.exit_code, said
                printed = normalised(said)
            place = 0
            for line in filter(None, map(normalised, expected.splitlines())):
                place = printed.find(line, place)
                assert place >= 0, f"{page} says that {line!r} is printed here. This was printed: {printed}"
    forget_modules(tmp_path)


def parts(page: Path) -> Iterator[tuple[str, str]]:
    """The page, cut behind each block of what is printed: what stands before the block, and its lines."""
    pieces = PRINTED.split(page.read_text(encoding="utf-8"))
    yield from zip(pieces[0::2], [*pieces[1::2], ""], strict=True)


def typed(text: str, directory: Path, capfd: pytest.CaptureFixture[str], *, by_a_shell: bool) -> tuple[int, str]:
    """Run the lines of a block; how the last one ended, and all that was printed."""
    commands = [shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    plain = all(words[0] == "reward-kit" or (words[0] == "python" and words[1].endswith(".py")) for words in commands)
    if by_a_shell or not plain or SHELL_SIGNS & set(text):
        done = run_program("bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{text}", directory=directory)
        return done.returncode, done.stdout
    capfd.readouterr()
    printed, code = "", 0
    for words in commands:
        code = called(words)
        printed += "\n".join(capfd.readouterr())
        if code:
            break
    return code, printed


def called(words: list[str]) -> int:
    """Run one command in this process; how it ended."""
    before = sys.argv
    try:
        if words[0] == "reward-kit":
            main(words[1:])
        else:
            sys.argv = words[1:]
            sys.path.insert(0, str(Path(words[1]).resolve().parent))
            copy_context().run(runpy.run_path, words[1], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    finally:
        sys.argv = before
    return 0


def normalised(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def as_fireworks(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fireworks' API and its models, as far as an example asks them: both on this machine."""
    script = {"api_key": KEY, "function_path": f"{example / 'mock_model.py'}:answer", "models": [FIREWORKS_MODEL]}
    with fake_fireworks() as fake, MockServer(script) as models:
        monkeypatch.setenv("FIREWORKS_API_KEY", KEY)
        monkeypatch.setenv("FIREWORKS_API_BASE", fake.url)
        monkeypatch.setenv("REWARD_KIT_FIREWORKS_API_BASE", models.url)
        yield
        assert fake.things and models.requests, "one of them was not asked"
