# SPDX-License-Identifier: Apache-2.0
"""A run that is looked at: its files as they are now, read as often as they change and no oftener.

OpenedRun ──now()──▶ Snapshot    version · judged answers (from `analysis`) · report · columns · texts
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import load
from reward_kit.analysis.report import Report, analyse
from reward_kit.errors import RewardKitError
from reward_kit.storage.run_directory import read_document
from reward_kit.viewer.columns import Columns, columns_of
from reward_kit.viewer.lines import Told, read_line
from reward_kit.viewer.problems import Gone, NotThere, Unreadable
from reward_kit.viewer.sample_names import sample_names
from reward_kit.viewer.sources import Found, Kind

__all__ = ["OpenedRun", "Snapshot"]

_LOOKED_AT = 200
"""Rows that are looked at to learn the dataset's columns."""
_MOST_DATA_COLUMNS = 60
_LOCKS = Path("/proc/locks")


class _Identity(NamedTuple):
    """What tells one state of a file from another."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> _Identity | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Snapshot:
    """What a run held at one moment."""

    def __init__(self, run: Found, version: int, answers: JudgedAnswers | None) -> None:
        """Take the answers as they were read; None: there is none yet."""
        self.run = run
        self.version = version
        self.answers = answers

    @cached_property
    def kind(self) -> Kind:
        """Which front door made the run."""
        return self.run.kind()

    @cached_property
    def report(self) -> Report | None:
        """Every figure, as `inspect` works them out."""
        return None if self.answers is None else analyse(self.answers)

    @cached_property
    def names(self) -> pa.Array[Any]:
        """What each sample is called in addresses: its id, and its split where ids come again in others."""
        return pa.array([], pa.string()) if self.answers is None else sample_names(self.answers)

    @cached_property
    def columns(self) -> Columns | None:
        """The narrow columns."""
        return None if self.answers is None else columns_of(self.answers, self.names)

    @cached_property
    def data_columns(self) -> dict[str, str]:
        """The dataset's own columns, and whether each holds numbers, truth values or text."""
        if self.answers is None:
            return {}
        few = np.arange(0, self.answers.records, max(1, self.answers.records // _LOOKED_AT))
        found: dict[str, set[str]] = {}
        for told in self.told(few):
            for name, value in told.columns.items():
                kinds = found.setdefault(name, set())
                if value is not None:
                    kinds.add(_kind(value))
        named = list(found.items())[:_MOST_DATA_COLUMNS]
        return {name: next(iter(kinds)) if len(kinds) == 1 else "text" for name, kinds in named}

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of each sample, by what it is called."""
        return {str(name): place for place, name in enumerate(self.names.to_pylist())}

    def sample_of(self, name: str) -> int:
        """The number of the sample of this name."""
        found = self.places.get(name)
        if found is None:
            raise NotThere(f"The run {self.run.title!r} has no sample {name[:200]!r}. Go back to its table.")
        return found

    def row_of(self, name: str, index: int) -> int:
        """The row of one candidate of a sample."""
        answers = self.held()
        rows = answers.rows_of(self.sample_of(name))
        found = np.flatnonzero(answers.candidate[rows] == index)
        if not len(found):
            raise NotThere(f"The sample {name[:200]!r} has no candidate {index}. Go back to its page.")
        return int(rows.start) + int(found[0])

    def held(self) -> JudgedAnswers:
        """The answers, where there are any."""
        if self.answers is None:
            raise NotThere(f"The run {self.run.title!r} has no results yet. Wait for the first.")
        return self.answers

    @property
    def held_columns(self) -> Columns:
        """The narrow columns, where there is any answer."""
        self.held()
        assert self.columns is not None
        return self.columns

    def told(self, rows: NDArray[np.int64] | Sequence[int]) -> list[Told]:
        """What these rows say, read from the files."""
        return [read_line(line) for line in self.whole(rows)]

    def whole(self, rows: NDArray[np.int64] | Sequence[int]) -> list[dict[str, Any]]:
        """These rows as they stand in the files."""
        answers = self.held()
        try:
            return answers.texts.whole(answers.source_rows[np.asarray(rows, dtype=np.int64)])
        except FileNotFoundError as error:
            raise _gone(self.run) from error
        except (OSError, pa.ArrowException, orjson.JSONDecodeError, RewardKitError) as error:
            raise Unreadable(
                f"The records of {self.run.title!r} cannot be read: they changed just now, or are damaged. Load the "
                "page again, or see what `reward-kit doctor` says."
            ) from error


def _kind(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def _gone(run: Found) -> Gone:
    return Gone(f"{run.title!r} is no longer there: {str(run.path)!r} was moved or deleted. Start the viewer again.")


class OpenedRun:
    """One run of those found at the start."""

    def __init__(self, found: Found) -> None:
        """Remember where it is; nothing is read yet."""
        self.found = found
        self._lock = threading.Lock()
        self._seen: _Identity | None = None
        self._snapshot: Snapshot | None = None
        self._version = 0

    @property
    def key(self) -> str:
        """What it is called in addresses."""
        return self.found.key

    def now(self) -> Snapshot:
        """The run as it is now."""
        with self._lock:
            if not self.found.path.exists():
                self._snapshot = self._seen = None
                raise _gone(self.found)
            seen = _Identity.of(self.found.results)
            if self._snapshot is None or seen != self._seen:
                answers = self._read(seen)
                self._version += 1
                self._snapshot, self._seen = Snapshot(self.found, self._version, answers), seen
            return self._snapshot

    def _read(self, seen: _Identity | None) -> JudgedAnswers | None:
        if seen is None or not seen.size:
            return None
        try:
            return load(self.found.results, name=self.found.title)
        except FileNotFoundError as error:
            raise _gone(self.found) from error
        except RewardKitError as error:
            raise Unreadable(str(error)) from error
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(
                f"{str(self.found.results)!r} cannot be read ({error}). Restore it, or make it again."
            ) from error

    # ── what stands beside the answers ───────────────────────────────────────────────────────────────────────────────

    def manifest(self) -> dict[str, Any] | None:
        """The run's manifest; None where there is none, or none that can be read."""
        return None if self.found.is_table else _document(self.found.path / "manifest.json")

    def config(self) -> str | None:
        """The run's configuration as it stands in its file."""
        if self.found.is_table:
            return None
        try:
            return (self.found.path / "config.yaml").read_bytes().decode("utf-8", "replace")
        except OSError:
            return None

    def is_live(self) -> bool:
        """Whether a process works there now. It is not locked to find that out: that could keep a run from starting."""
        if self.found.is_table:
            return False
        lock = self.found.path / ".lock"
        try:
            held = lock.stat()
            if _LOCKS.exists():
                return _is_locked(held, _LOCKS.read_text())
            return _is_alive(int(lock.read_text() or 0)) and not is_finished(self.manifest())
        except (OSError, ValueError):
            return False


def _is_locked(held: os.stat_result, locks: str) -> bool:
    """Whether the kernel lists a lock on the file, by its device and inode."""
    device = f"{os.major(held.st_dev):02x}:{os.minor(held.st_dev):02x}:{held.st_ino}"
    return any(device in line.split() and "FLOCK" in line for line in locks.splitlines())


def _is_alive(process: int) -> bool:
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_finished(manifest: Mapping[str, Any] | None) -> bool:
    """Whether the last phase of a run came to its end."""
    phases = (manifest or {}).get("phases") or []
    return not phases or phases[-1].get("status") != "running"


def _document(path: Path) -> dict[str, Any] | None:
    try:
        return read_document(path)
    except RewardKitError:
        return None
