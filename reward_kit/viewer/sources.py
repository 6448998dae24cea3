# SPDX-License-Identifier: Apache-2.0
"""Which runs there are under the paths that were given. What is not found here at the start can never be asked for.

a run directory, live or not · its results.jsonl · a Parquet file of `best-of-n` · a directory that holds such things
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from reward_kit.errors import DatasetError
from reward_kit.storage.judged import JudgedAnswer
from reward_kit.storage.run_directory import OWN_FILES, RESULTS, ROLLOUTS
from reward_kit.storage.vocabularies import FIGURES, TEXTS, find_columns, vocabulary_of
from reward_kit.utils import exact_json

__all__ = ["Found", "Kind", "find_runs"]

Kind = Literal["run", "best-of-n", "shell"]

_MOST_RUNS = 10_000
_MOST_DEPTH = 8
_FIRST_LINE = 1 << 20
"""Bytes of a file in which its first line is looked for: enough to see which columns it has."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "batches"})
"""Folders that hold no runs: `batches` has the files of requests of the run that it lies in."""


class Found(NamedTuple):
    """A run that can be shown."""

    key: str
    """Names it in addresses; stable for a path."""
    path: Path
    """The run directory, or the Parquet file; without links."""
    title: str

    @property
    def is_table(self) -> bool:
        """Whether it is one Parquet file, and no directory."""
        return self.path.suffix == ".parquet"

    @property
    def results(self) -> Path:
        """The file that holds the judged answers."""
        return self.path if self.is_table else self.path / RESULTS

    def kind(self) -> Kind:
        """Which front door made it, as its first line says; of a run without any, `run`."""
        return "best-of-n" if self.is_table else _kind_of(self.results)


def find_runs(paths: Sequence[Path]) -> list[Found]:
    """The runs at and under these paths, each once, in the order of the paths and by name below them.

    A link inside a directory is followed only where it leads to something below a path that was given.
    """
    roots = [_existing(path) for path in paths]
    places: dict[Path, None] = {}
    for path, root in zip(paths, roots, strict=True):
        given_alone = [root] if path.is_file() else None
        for place in given_alone or _below(root):
            if all(_is_inside(file, roots) for file in _files(place)):
                places[place.resolve()] = None
    found = [place for place in places if not _is_unfinished_twin(place, places, roots)]
    if not found:
        shown = ", ".join(repr(str(path)) for path in paths)
        raise DatasetError(
            f"There is no run under {shown}. Name a run directory, a Parquet file of `best-of-n`, or a directory that "
            "holds some."
        )
    return [Found(_key(place), place, title) for place, title in zip(found, _titles(found), strict=True)]


def _files(place: Path) -> list[Path]:
    """What is read of a run: the file, or the directory with the files that a run lives on."""
    return [place] if place.is_file() else [place, *(place / name for name in OWN_FILES)]


def _is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path stands below one that was given, once all links are followed."""
    resolved = path.resolve()
    return any(resolved == base or base in resolved.parents for base in roots)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise DatasetError(f"There is no {str(path)!r}. Name a run directory, or a Parquet file of `best-of-n`.")
    resolved = path.resolve()
    if resolved.is_file() and resolved.suffix != ".parquet":
        if resolved.name != RESULTS:
            raise DatasetError(
                f"{str(path)!r} is not a run. Name a run directory, a results.jsonl, or a Parquet file of `best-of-n`."
            )
        return resolved.parent
    return resolved


def _below(root: Path) -> Iterator[Path]:
    """The runs in a directory, also those inside a run directory: `outputs/task` may hold one, as its folders may."""
    count = 0
    for folder, directories, files in os.walk(root):
        here = Path(folder)
        if RESULTS in files or (ROLLOUTS in files and "manifest.json" in files):
            yield here  # a table that lies beside its files is no run of its own
            count += 1
        else:
            tables = [here / name for name in sorted(files) if name.endswith(".parquet")]
            judged = [table for table in tables if table.parent == root or _holds_verdicts(table)]
            yield from judged
            count += len(judged)
        if count >= _MOST_RUNS or len(here.relative_to(root).parts) >= _MOST_DEPTH:
            directories.clear()
        directories[:] = sorted(name for name in directories if not name.startswith(".") and name not in _SKIPPED)


def _holds_verdicts(table: Path) -> bool:
    """Whether a Parquet file may be an experiment: others lie about, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(table).names
    except (pa.ArrowException, OSError):
        return False
    held = find_columns({**FIGURES, **TEXTS}, names)
    return bool({"query_id", "query"} & held.keys()) and bool({"is_verified", "score"} & held.keys())


def _is_unfinished_twin(place: Path, places: dict[Path, None], roots: list[Path]) -> bool:
    """Whether it is the run directory of an experiment whose table is shown: they hold the same records."""
    return place.suffix == ".run" and place.with_suffix(".parquet") in places and place not in roots


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _titles(places: Sequence[Path]) -> list[str]:
    """By their own names; where several have the same, with as much of the path as tells them apart."""
    titles = [place.stem if place.suffix == ".parquet" else place.name for place in places]
    depth = 2
    while len(set(titles)) < len(titles) and depth < _MOST_DEPTH:
        twice = {title for title in titles if titles.count(title) > 1}
        titles = [
            "/".join(place.parts[-depth:]) if title in twice else title
            for title, place in zip(titles, places, strict=True)
        ]
        depth += 1
    return [_printable(title) for title in titles]


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _kind_of(results: Path) -> Kind:
    try:
        with results.open("rb") as file:
            row = JudgedAnswer.of_line(file.readline(_FIRST_LINE)).row
    except (OSError, exact_json.JSONDecodeError):
        return "run"
    return vocabulary_of(row).name if isinstance(row, dict) else "run"
