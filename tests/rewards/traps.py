# SPDX-License-Identifier: Apache-2.0
"""Traps for hostile data: code that leaves a mark where it runs, files that say when they are opened, an address that
counts who calls. What data may not choose springs none of them, in whichever process it is judged.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sqlite3
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin

import pytest

from reward_kit.reward_call import RESERVED
from reward_kit.typed_interface import resolved_annotation, signature_of, takes_number

_IN_OPEN = 0x20
CANARY = "canary-5b1e"
"""Stands in every file that is watched."""

CALLABLES = ("timeit:timeit", "os:system", "subprocess:getoutput", "builtins:eval", "builtins:exec")
"""Functions that run what they are given, by import path."""
ALIASES = frozenset(
    """
    api_base api_key base_url checker code command compare config container database db_path docker_image endpoint
    entrypoint env environment evaluator executable extractor file file_path files fn folder func func_path function
    function_path grader host image import_path interpreter judge judge_model llm loader mcp_server metric model
    model_name module package parts path plugin program proxy python remote requirements resource resources reward
    reward_fn reward_function sandbox scorer script server setup setup_commands special_judge tool_path
    tools_module_path url verifier verifier_params world isolated_python working_dir
    """.split()  # noqa: SIM905 - one word per line would be a page
)
"""Names under which people give code, files, addresses and models."""


class Traps:
    """A folder of watched files, an address that counts, and a place where code leaves its mark."""

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "marks"
        self.marks.mkdir(parents=True)
        self.files = folder / "watched"
        self.files.mkdir()
        self.python = f"__import__('os').system({self.shell('python')!r})"
        """An expression, and a statement, that leaves a mark."""
        evil = f"{self.python}\n\ndef judge(*args, **kwargs):\n    {self.python}\n    return True\n"
        texts = {"notes.txt": CANARY, "evil.py": f"# {CANARY}\n{evil}", "schema.json": f'{{"title": "{CANARY}"}}'}
        for name, text in texts.items():
            (self.files / name).write_text(text)
        with contextlib.closing(sqlite3.connect(self.files / "data.sqlite")) as database, database:
            database.execute(f"CREATE TABLE t AS SELECT '{CANARY}' AS x")
        self._line = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._line.getsockname()[1]}"
        self.contacts = 0
        threading.Thread(target=self._count, daemon=True).start()
        self._watch, self._watched = _watched([*self.files.iterdir()])

    def shell(self, name: str) -> str:
        """A command that leaves a mark of this name."""
        return f"touch {self.marks}/{name}"

    def _count(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._line.accept()
                self.contacts += 1
                line.close()

    def sprung(self) -> list[str]:
        """What sprang since the last look."""
        found = [f"ran: {mark.name}" for mark in self.marks.iterdir()]
        for mark in self.marks.iterdir():
            mark.unlink()
        found += [f"opened: {self._watched[number]}" for number in sorted({*_opened(self._watch)})]
        contacts, self.contacts = self.contacts, 0
        return found + ["contacted"] * bool(contacts)

    def close(self) -> None:
        """Take the traps away."""
        os.close(self._watch)
        self._line.close()

    def poisons(self) -> dict[str, Any]:
        """Values that would spring a trap where they are taken for more than values, by what they are."""
        evil = self.files / "evil.py"
        remote = {"model_name": "m", "api_base": self.url, "api_key": "k", "cache": {"enabled": False}}
        schema = {"$ref": f"{self.url}/schema", "properties": {"a": {"$ref": (self.files / "schema.json").as_uri()}}}
        return {
            **{path: path for path in CALLABLES},
            "python file": f"{evil}:judge", "python path": str(evil), "python": self.python,
            "shell": self.shell("shell"), "shell list": [self.shell("list")],
            "text file": str(self.files / "notes.txt"), "file url": (self.files / "notes.txt").as_uri(),
            "data file": str(self.files / "data.sqlite"),
            "above": f"../../../../../../../../../..{self.files / 'data.sqlite'}", "url": self.url,
            "judge": remote, "schema": schema, "part": {"reward": f"{evil}:judge", "params": {}},
            "parts": [f"{evil}:judge"],
            "keywords": {"cmd": self.shell("cmd"), "stmt": self.python, "source": self.python},
            "text": "{{ cycler.__init__.__globals__.os.popen('" + self.shell("template") + "') }}",
            "yaml": f"!!python/object/apply:os.system ['{self.shell('yaml')}']",
        }  # fmt: skip

    def truths(self) -> list[Any]:
        """Ground truths of every kind that the library reads, with traps in each place that could be taken for more."""
        case = {"input": self.python, "expected_output": self.python}
        more: dict[str, Any] = dict.fromkeys(sorted(ALIASES), f"{self.files / 'evil.py'}:judge")
        return [
            [{**case, **more}], {"tests": [case], **more}, {"inputs": [self.python], "outputs": [self.python], **more},
            {"test": f"def check(f):\n    {self.python}\n", "entry_point": "os.system", **more},
            {"schema": self.poisons()["schema"], **self.poisons()["schema"], **more}, [self.poisons()["judge"]],
            [{"name": "os.system", "arguments": {"command": self.shell("call")}}], f"os.system({self.shell('text')!r})",
            {"function_calls": [[f"os.system({self.shell('call')!r})"]], "comparable_state": {"a": self.url}, **more},
            f"ATTACH '{self.files / 'data.sqlite'}' AS a", f"SELECT readfile('{self.files / 'notes.txt'}')",
            f"file://{self.files / 'notes.txt'}", {"statement": f"theorem t : {self.python}", **more}, "4",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traps]:
    if sys.platform != "linux":
        pytest.skip("only Linux says which files are opened")
    made = Traps(tmp_path_factory.mktemp("traps"))
    yield made
    made.close()


def _watched(files: list[Path]) -> tuple[int, dict[int, str]]:
    """What tells, as inotify does, of every opening of these files, by any process; and its numbers for them."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert watch >= 0, os.strerror(ctypes.get_errno())
    numbers = {libc.inotify_add_watch(watch, bytes(file), _IN_OPEN): file.name for file in files}
    assert min(numbers) >= 0 and len(numbers) == len(files), os.strerror(ctypes.get_errno())
    return watch, numbers


def _opened(watch: int) -> Iterator[int]:
    with contextlib.suppress(BlockingIOError):
        while events := os.read(watch, 65536):
            yield from (number for number, *_ in struct.iter_unpack("iIII", events))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Hostile(NamedTuple):
    """A row's truth and columns, and what is bad about them."""

    name: str
    truth: Any
    columns: Mapping[str, Any]


def hostile(reward: Callable[..., Any], traps: Traps, needed: Mapping[str, Any]) -> Iterator[Hostile]:
    """Rows that put every poison into every parameter, and into all the usual names at once, and every hostile truth.

    A parameter that is declared to be a number, or one of some words, is tried with one poison.
    `needed`: columns without which the reward judges nothing; `truth` is the ground truth in them.
    """
    columns = dict(needed)
    truth = columns.pop("truth", [{"input": traps.python, "expected_output": traps.python}])
    named = [p for p in signature_of(reward).parameters.values() if p.kind is not p.VAR_KEYWORD]
    simple = {p.name for p in named if takes_number(reward, p) or get_origin(resolved_annotation(reward, p)) is Literal}
    own = [p.name for p in named if p.name not in RESERVED]
    others = sorted(ALIASES - set(own))
    for name, poison in traps.poisons().items():
        for parameter in own if name == "python file" else [each for each in own if each not in simple]:
            yield Hostile(f"{parameter}={name}", truth, {**columns, parameter: poison})
        yield Hostile(f"others={name}", truth, {**columns, **dict.fromkeys(others, poison)})
    for number, each in enumerate(traps.truths()):
        yield Hostile(f"truth {number}", each, columns)
