# SPDX-License-Identifier: Apache-2.0
"""A run that is looked at: its files as they are now, read as often as they change and no oftener.

OpenedRun ──now()──▶ Snapshot    version · judged answers (from `analysis`) · report · columns · texts
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import JudgedAnswers
from reward_kit.analysis.loading import ResultsReader, load
from reward_kit.analysis.report import Report, analyse
from reward_kit.errors import RewardKitError
from reward_kit.storage.judged import JudgedAnswer
from reward_kit.storage.run_directory import read_document
from reward_kit.viewer.columns import DATA, Columns, columns_of
from reward_kit.viewer.index_cache import Index, load_index, save_index
from reward_kit.viewer.problems import Gone, NotThere, Unreadable, ViewerError
from reward_kit.viewer.queries import Database, Query
from reward_kit.viewer.sample_names import sample_names
from reward_kit.viewer.sources import Found, Kind
from reward_kit.viewer.store import FileIdentity, Lines, Matched, Store, TableFile, TextMatch

__all__ = ["OpenedRun", "Progress", "Snapshot", "is_finished", "reading"]

_LOOKED_AT = 200
"""Rows that are looked at to learn the dataset's columns."""
_MOST_DATA_COLUMNS = 60
_LOCKS = Path("/proc/locks")
_LINES_AT_ONCE = 20_000
_LARGE = 16 << 20
"""Bytes of results from which on an index is kept."""
_WORTH_KEEPING = 0.25
"""The share of answers that must be new for the index to be written again."""
_QUICK = 20_000
_REST = 40.0
"""A run of more than `_QUICK` records that grows is left alone for this many times as long as working it out took."""


class Snapshot:
    """What a run held at one moment."""

    def __init__(
        self, run: Found, version: int, answers: JudgedAnswers | None, store: Store | None,
        looked: dict[bytes, dict[str, str]] | None = None,
    ) -> None:  # fmt: skip
        """Take the answers as they were read, and where their texts are; None: there is none yet.

        `looked`: what an earlier state of the same lines found the dataset's columns to be, by the rows it looked at.
        """
        self.run = run
        self.version = version
        self.answers = answers
        self.store = store
        self._looked = {} if looked is None else looked
        self._vote: threading.Thread | None = None
        self._beginning = threading.Lock()
        self.cost = 0.0
        """Seconds that it took to read and to work out."""

    @cached_property
    def kind(self) -> Kind:
        """Which front door made the run."""
        return self.run.kind()

    @cached_property
    def figures(self) -> Report | None:
        """Every figure as `inspect` works them out, but for the vote and the examples, which are read from texts."""
        return self._analysed(vote_limit=0, examples=0)

    @cached_property
    def report(self) -> Report | None:
        """Every figure, as `inspect` works them out."""
        return self._analysed()

    def report_within(self, seconds: float) -> tuple[Report | None, bool]:
        """Every figure, and True; those without the vote, and False, where it takes longer. Then it goes on."""
        with self._beginning:
            if self._vote is None:
                vote = threading.Thread(target=self._work_out, daemon=True, name=f"votes on {self.run.title}")
                vote.start()
                self._vote = vote
        self._vote.join(seconds)
        if self._vote.is_alive():
            return self._analysed(vote_limit=0), False
        return self.report, True

    def _work_out(self) -> None:
        with contextlib.suppress(ViewerError):  # whoever asks next is told
            _ = self.report

    def _analysed(self, **options: Any) -> Report | None:
        if self.answers is None:
            return None
        start = time.perf_counter()
        with reading(self.run):
            try:
                found = analyse(self.answers, **options)
            except UnicodeDecodeError:  # bytes that are no text, which votes and examples would be read from
                found = analyse(self.answers, vote_limit=0, examples=0)
        self.cost += time.perf_counter() - start
        return found

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
        few = np.arange(
            min(self.answers.records, _LOOKED_AT)
        )  # they stand together: others would be read from all over
        key = self._source(few).tobytes()  # of a run that grows, mostly those of the state before
        if key not in self._looked:
            kinds = self._kinds_of_columns(few)
            self._looked.clear()
            self._looked[key] = kinds
        return self._looked[key]

    def _kinds_of_columns(self, few: NDArray[np.int64]) -> dict[str, str]:
        found: dict[str, set[str]] = {}
        for entry in self.read(few):
            for name, value in entry.columns.items():
                kinds = found.setdefault(name, set())
                if value is not None:
                    kinds.add(_kind(value))
        named = list(found.items())[:_MOST_DATA_COLUMNS]
        return {name: next(iter(kinds)) if len(kinds) == 1 else "text" for name, kinds in named}

    def sample_of(self, name: str) -> int:
        """The number of the sample of this name."""
        place = -1 if self.answers is None else pc.index(self.names, pa.scalar(name)).as_py()
        if place < 0:
            raise NotThere(f"The run {self.run.title!r} has no sample {name[:200]!r}. Go back to its table.")
        return int(place)

    def has_sample(self, name: str) -> bool:
        """Whether there is a sample of this name."""
        return bool(pc.index(self.names, pa.scalar(name)).as_py() != -1)

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

    def read(self, rows: NDArray[np.int64] | Sequence[int]) -> list[JudgedAnswer]:
        """What these rows say, for a table: long texts may be cut."""
        return self._store().read(self._source(rows))

    def read_whole(self, rows: NDArray[np.int64] | Sequence[int]) -> list[JudgedAnswer]:
        """What these rows say, all of it."""
        return [JudgedAnswer(line) for line in self.whole(rows)]

    def whole(self, rows: NDArray[np.int64] | Sequence[int]) -> list[dict[str, Any]]:
        """These rows as they stand in the files."""
        with reading(self.run):
            return self._store().whole(self._source(rows))

    def more_column(self, name: str) -> Any:
        """A column that is not among the narrow ones, of all records: `length`, or one of the dataset."""
        with reading(self.run):
            kind = "number" if name == "length" else self.data_columns[name.removeprefix(DATA)]
            return self._store().whole_column(name, kind).take(self.held().source_rows)

    def scan(self, match: TextMatch, query: Query) -> Iterator[Matched]:
        """Look through long texts, in parts; rows are those of the answers."""
        with reading(self.run):
            for part in self._store().scan(match, query):
                rows = self._row_of_source[part.rows]
                yield Matched(part.read, rows[rows >= 0])

    @cached_property
    def _row_of_source(self) -> NDArray[np.int64]:
        """The row of each row of the file; -1 for those that a later one took the place of."""
        answers = self.held()
        found = np.full(int(answers.source_rows.max()) + 1, -1, dtype=np.int64)
        found[answers.source_rows] = np.arange(answers.records)
        return found

    def _source(self, rows: NDArray[np.int64] | Sequence[int]) -> NDArray[np.int64]:
        return self.held().source_rows[np.asarray(rows, dtype=np.int64)]

    def _store(self) -> Store:
        self.held()
        assert self.store is not None
        return self.store


@contextlib.contextmanager
def reading(run: Found) -> Iterator[None]:
    """What goes wrong with the files of a run while they are read is told as a problem of the run."""
    try:
        yield
    except ViewerError:
        raise
    except FileNotFoundError as error:
        raise _gone(run) from error
    except RewardKitError as error:
        raise Unreadable(str(error)) from error
    except (OSError, pa.ArrowException, orjson.JSONDecodeError) as error:
        raise Unreadable(
            f"The records of {run.title!r} cannot be read: they are damaged, or changed just now. Load the page again, "
            "or see what `reward-kit doctor` says of the run."
        ) from error


def _kind(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def _gone(run: Found) -> Gone:
    return Gone(f"{run.title!r} is no longer there: {str(run.path)!r} was moved or deleted. Start the viewer again.")


class Progress(NamedTuple):
    """How far a run has come, as far as it was read."""

    version: int
    records: int
    judged: int
    mean: float | None
    expected: int | None
    live: bool
    gone: bool


class OpenedRun:
    """One run of those found at the start."""

    def __init__(self, found: Found, database: Database) -> None:
        """Remember where it is; nothing is read yet."""
        self.found = found
        self._database = database
        self._building = threading.RLock()
        """Held while a state is worked out: once is enough."""
        self._lock = threading.RLock()
        """Held while lines are read, which is quick: who follows a run does not wait for figures."""
        self._seen: FileIdentity | None = None
        self._snapshot: Snapshot | None = None
        self._version = 0
        self._built = 0.0
        self._reader: ResultsReader | None = None
        self._file: FileIdentity | None = None
        self._columns: dict[str, Any] = {}
        self._looked: dict[bytes, dict[str, str]] = {}
        self._indexed = 0
        self._settings: tuple[str, dict[str, Any] | None] | None = None
        self._first_look: threading.Thread | None = None
        self.share_read = 0.0
        """How much of the file was read, while it is read for the first time."""

    @property
    def key(self) -> str:
        """What it is called in addresses."""
        return self.found.key

    def now(self) -> Snapshot:
        """The run as it is now; of a large one that grows, as it was a moment ago."""
        with self._building:
            return self._now()

    def within(self, seconds: float) -> Snapshot | None:
        """The run as it is now; None where reading it takes longer. It goes on, and is quicker the next time."""
        if self._snapshot is None:
            if self._first_look is None or not self._first_look.is_alive():
                self._first_look = threading.Thread(target=self._look, daemon=True, name=f"reads {self.found.title}")
                self._first_look.start()
            self._first_look.join(seconds)
            if self._first_look.is_alive():
                return None
        return self.now()

    def _look(self) -> None:
        with contextlib.suppress(ViewerError):  # whoever asks next is told
            self.now()

    def progress(self) -> Progress:
        """How far the run has come. Reads what was appended, and nothing else."""
        seen = FileIdentity.of(self.found.results)
        if seen is None and not self.found.path.exists():
            return Progress(self._version, 0, 0, None, None, live=False, gone=True)
        live = self.is_live()
        if self.found.is_table or seen is None:
            return self._progress_of(self.now(), live)
        with self._lock:
            known = self._snapshot
            if known is not None and seen == self._seen:
                return self._progress_of(known, live)
            with reading(self.found):
                reader = self._grow(seen, _LINES_AT_ONCE)
            mean = reader.total_score / reader.judged if reader.judged else None
            version = self._version + self._is_due()
            return Progress(version, reader.rows, reader.judged, mean, self._expected(), live, gone=False)

    def _progress_of(self, snapshot: Snapshot, live: bool) -> Progress:
        answers = snapshot.answers
        if answers is None:
            return Progress(snapshot.version, 0, 0, None, self._expected(), live, gone=False)
        scores = answers.scores[~np.isnan(answers.scores)]
        mean = float(scores.mean()) if len(scores) else None
        judged = int(answers.judged.sum())
        return Progress(snapshot.version, answers.records, judged, mean, self._expected(), live, gone=False)

    def _expected(self) -> int | None:
        phases = (self.manifest() or {}).get("phases") or [{}]
        limit, n = phases[-1].get("limit"), phases[-1].get("n")
        return limit * n if isinstance(limit, int) and isinstance(n, int) else None

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _now(self) -> Snapshot:
        if not self.found.path.exists():
            self._snapshot = self._seen = self._reader = None
            raise _gone(self.found)
        seen = FileIdentity.of(self.found.results)
        known = self._snapshot
        if known is not None and (seen == self._seen or self._may_wait(seen)):
            return known
        start = time.perf_counter()
        with reading(self.found):
            answers, store = self._read(seen)
        with self._lock:
            self._version += 1
            snapshot = Snapshot(
                self.found, self._version, answers, store, None if self.found.is_table else self._looked
            )
            snapshot.cost = time.perf_counter() - start
            self._snapshot, self._seen = snapshot, seen
            self._built = time.monotonic()
        return snapshot

    def _may_wait(self, seen: FileIdentity | None) -> bool:
        """Whether a file only grew, and working it out again would take too much of the run's own time."""
        known = self._snapshot
        if known is None or self._file is None or seen is None or not seen.is_same_file(self._file):
            return False
        return not self._is_due()

    def _is_due(self) -> bool:
        """Whether it is time to work out again what has changed."""
        known = self._snapshot
        if known is None or known.answers is None or known.answers.records <= _QUICK:
            return True
        return time.monotonic() >= self._built + _REST * known.cost

    def _read(self, seen: FileIdentity | None) -> tuple[JudgedAnswers | None, Store | None]:
        if seen is None or not seen.size:
            return None, None
        if self.found.is_table:
            answers = load(self.found.path, name=self.found.title)
            return answers, TableFile(self.found.path, self._database, seen)
        with self._lock:
            reader = self._grow(seen)
            if not reader.rows:
                return None, None
            if is_finished(self.manifest()):
                reader.refuse_cut()
            self._keep_index(reader)
            state = reader.state()
            store = Lines(self.found.results, state.offsets, reader.position, seen, self._columns)
        return reader.judged_answers(self.found.title, state), store

    def _grow(self, seen: FileIdentity, most: int | None = None) -> ResultsReader:
        """Read what was appended; all of it, where it is another file than before."""
        reader, results = self._reader, self.found.results
        other = self._file is None or not seen.is_same_file(self._file)
        if reader is None or other or seen.size < reader.position:
            reader = ResultsReader(results)
            kept = load_index(self.key, results) if seen.size > _LARGE else None
            if kept is not None:
                reader.restore(kept.table, kept.offsets, position=kept.position, lines=kept.lines)
            self._file, self._columns, self._looked, self._indexed = seen, {}, {}, reader.rows
        self._reader = None  # one that stumbles is not used again
        total = 0
        while (most is None or total < most) and (count := reader.read(_LINES_AT_ONCE)):
            total += count
            self.share_read = reader.position / max(1, seen.size)
        self._reader = reader
        return reader

    def _keep_index(self, reader: ResultsReader) -> None:
        grown = reader.rows - self._indexed
        if reader.position > _LARGE and grown > _WORTH_KEEPING * reader.rows and not reader.has_episodes:
            index = Index(reader.table(), reader.offsets(), reader.position, reader.lines)
            save_index(self.key, self.found.results, index)
            self._indexed = reader.rows

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

    def settings(self) -> dict[str, Any] | None:
        """The run's configuration, read; None where there is none that can be read."""
        text = self.config()
        if text is None:
            return None
        if self._settings is None or self._settings[0] != text:
            import yaml

            try:
                held = yaml.safe_load(text)
            except yaml.YAMLError:
                held = None
            self._settings = text, held if isinstance(held, dict) else None
        return self._settings[1]

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
