# SPDX-License-Identifier: Apache-2.0
"""The golden directories: what each front door writes, made anew or read as it was committed.

    inputs/                       datasets, configs, the mock model and the rewards
    run/  best_of_n/  shell/      what `reward-kit run`, `best-of-n` and `shell` made of them, as they wrote it
    shell_foreign/                what `shell --phase execution` made of somebody else's commands file
    shell_in_turns/               what `shell` made when its phases ran one after the other: only to be read
    run_of_schema_2/              what `run` made when each rollout held its sample: only to be read
    readings/                     what `inspect` and `export` make of these directories

`python -m tests.golden.front_doors [name …]` makes them anew: do that only when a format is changed on purpose.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from reward_kit.cli import main

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"

_SHELL = ("shell", "--sandbox", "none", "--concurrency", "1", "--timeout", "60")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "run.yaml"),
    "best_of_n": ("best-of-n", "--config", "experiment.yaml"),
    "shell": (*_SHELL, "--model", "mock", "--dataset", "tasks.jsonl", "-n", "2", "--output-dir", "shell"),
    "shell_foreign": (
        *_SHELL, "--phase", "execution", "--commands-file", "commands.jsonl", "--output-dir", "shell_foreign",
    ),
}  # fmt: skip
"""What makes each directory, in a copy of the inputs."""
ENTERED = {
    **COMMANDS,
    "shell_in_turns": (*COMMANDS["shell"][:-1], "shell_in_turns"),
    "run_of_schema_2": (*COMMANDS["run"], "output.output_dir=run_of_schema_2"),
}
"""What enters each directory, also those that are made no more."""


SOURCES = {
    "run": "run", "best_of_n": "best_of_n/table.run", "best_of_n_table": "best_of_n/table.parquet", "shell": "shell",
    "shell_foreign": "shell_foreign",
}  # fmt: skip
"""What can be read: the run directories, and the table that one of them was made into."""
SHAPES = ("sft", "preference", "rm", "kto", "grpo")


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def call(*arguments: str | Path) -> Said:
    """Call `reward-kit` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leave:
            code = leave.code
    return Said(code if isinstance(code, int) else 0 if code is None else 1, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def inside(directory: Path) -> Iterator[None]:
    """Work in a directory, as a person who types the commands does."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def make(home: Path, names: Sequence[str] = tuple(COMMANDS)) -> Path:
    """Copy the inputs to `home` and call the front doors there."""
    shutil.copytree(INPUTS, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    with inside(home):
        for name in names:
            shutil.rmtree(name, ignore_errors=True)
            said = call(*COMMANDS[name], "--quiet")
            assert said.code == 0, f"{name}: {said.err}"
    return home


def committed(home: Path) -> Path:
    """A copy of the inputs and of the directories that were made of them."""
    shutil.copytree(HERE, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.py", "inputs"))
    shutil.copytree(INPUTS, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return home


def files_of(home: Path) -> dict[str, str]:
    """Every file of the golden directories in `home`, as text that is the same wherever and whenever it was made."""
    found: dict[str, str] = {}
    for name in COMMANDS:
        for path in sorted((home / name).rglob("*")):
            if path.is_file() and path.name != ".lock":
                text = _table(path) if path.suffix == ".parquet" else path.read_text()
                found[str(path.relative_to(home))] = normalised(text)
    return found


def readings(home: Path) -> dict[str, str]:
    """What `inspect` and `export` make of the golden directories in `home`, as text."""
    with inside(home):
        return {f"{name}.json": _reading(source) for name, source in SOURCES.items()}


def _reading(source: str) -> str:
    said = call("inspect", source, "--format", "json", "--votes", "all")
    assert said.code == 0, said.err
    found: dict[str, Any] = {"inspect": orjson.loads(said.out)}
    for shape in SHAPES:
        rows = Path(f"{shape}.jsonl")
        said = call("export", source, "--to", shape, "--reasoning", "field", "-o", rows, "--overwrite", "--json")
        lines = rows.read_bytes().splitlines() if rows.exists() else []
        found[shape] = {"code": said.code, "counts": said.out, "rows": [orjson.loads(line) for line in lines]}
        rows.unlink(missing_ok=True)
    return normalised(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()) + "\n"


# ── what differs from run to run ─────────────────────────────────────────────────────────────────────────────────────

_NUMBERS = (
    "seconds", "inference_seconds", "execution_seconds", "total_seconds", "wall_seconds", "tokens_per_second",
    "latency_ms",
)  # fmt: skip
_TEXTS = (
    "generated_at", "timestamp", "started", "ended", "finished", "start_time", "end_time", "created",
    "reward_kit", "reward_kit_version", "python", "platform", "git",
    "source", "reading", "reward.source", "digest", "check",
)  # fmt: skip
_PATTERNS = (
    (re.compile(rf'"({"|".join(map(re.escape, _NUMBERS))})":( ?)(?:null|[-+0-9.eE]+)'), r'"\1":\2<number>'),
    (re.compile(rf'"({"|".join(map(re.escape, _TEXTS))})":( ?)(?:null|"(?:[^"\\]|\\.)*")'), r'"\1":\2<text>'),
    (re.compile(r'("files": )\{[^}]*\}'), r"\1<sizes and times>"),
    (re.compile(r"^# check: [0-9a-f]{8}$", re.MULTILINE), "# check: <text>"),
    (re.compile(r"/[\w/.-]*/reward-kit-\w+"), "<sandbox>"),
)


def normalised(text: str) -> str:
    """The text without times, durations, versions, the host, digests of source code, and checksums over these.

    Nothing else may differ between two runs of the same inputs: not a byte, not the order of two columns.
    """
    for pattern, stands_for in _PATTERNS:
        text = pattern.sub(stands_for, text)
    return text


def _table(path: Path) -> str:
    """A Parquet file: its columns with their types, its metadata, its rows. Its bytes are the library's affair."""
    from pyarrow.parquet import read_table

    table = read_table(path)
    metadata = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
    parts: list[Any] = [str(table.schema.remove_metadata()), {name: _value(text) for name, text in metadata.items()}]
    return b"\n".join(map(orjson.dumps, [*parts, *table.to_pylist()])).decode() + "\n"


def _value(text: str) -> Any:
    try:
        value = orjson.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and "digests" in value:  # of the run that the table was made from
        return {name: None for name in value}
    return value


# ── making them anew ─────────────────────────────────────────────────────────────────────────────────────────────────


def regenerate(names: Sequence[str]) -> None:
    """Put what the present code writes in the place of the golden directories."""
    with tempfile.TemporaryDirectory() as scratch:
        home = make(committed(Path(scratch)), names)
        for name in names:
            shutil.rmtree(HERE / name, ignore_errors=True)
            shutil.copytree(home / name, HERE / name, ignore=shutil.ignore_patterns(".lock"))
        for name, text in readings(home).items():
            (HERE / "readings").mkdir(exist_ok=True)
            (HERE / "readings" / name).write_text(text)


if __name__ == "__main__":
    regenerate(sys.argv[1:] or tuple(COMMANDS))
    sys.stderr.write("The golden directories are made anew: look at what changed before you commit it.\n")
