# SPDX-License-Identifier: Apache-2.0
"""Looking into a response cache and making it smaller, while runs go on reading and writing it."""

from __future__ import annotations

import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from reward_kit.errors import StorageError
from reward_kit.generation.cache.entries import entries_path, entry_key, key_digest, read_entry
from reward_kit.storage.files import Draft, GrowingFile
from reward_kit.utils.digest_map import DigestMap

__all__ = ["CacheInfo", "PruneReport", "info", "prune"]


@dataclass(frozen=True)
class CacheInfo:
    """What a response cache holds, for `reward-kit cache info`."""

    entries: int
    """Answers that can be had from it."""
    bytes: int
    """The size of its files."""
    oldest: datetime | None
    newest: datetime | None
    models: dict[str, int]
    """How many answers each model gave."""
    superseded: int
    """Entries that another one of the same key stands in for."""
    unreadable: int
    """Lines that are no whole entry, such as the last one of a writer that was killed, or one that was damaged."""
    unchecked: int = 0
    """Answers of a time before checksums: nobody can say whether they are what was written."""


@dataclass
class PruneReport:
    """What `reward-kit cache prune` kept and removed."""

    kept: int = 0
    """Entries that are still there."""
    removed: int = 0
    """Entries and unreadable lines that are gone."""
    bytes_before: int = 0
    bytes_after: int = 0


def info(cache_dir: Path | str) -> CacheInfo:
    """Count what is in the cache in `cache_dir`. A directory without one counts as empty."""
    seen, models, times = DigestMap(), Counter[str](), _Span()
    size = superseded = unreadable = unchecked = 0
    for line in _all_lines(Path(cache_dir)):
        size += len(line) + 1
        entry = _parse(line)
        if entry is None:
            unreadable += bool(line)
        elif entry.digest in seen:
            superseded += 1
        else:
            seen.put(entry.digest, 0)
            models[entry.model] += 1
            times.add(entry.created)
            unchecked += not entry.checked
    ordered = dict(models.most_common())
    return CacheInfo(len(seen), size, times.first, times.last, ordered, superseded, unreadable, unchecked)


_ADVICE = (
    "Nothing in the cache is lost: check the free space and the permissions of its directory, then prune it again."
)


def prune(
    cache_dir: Path | str,
    *,
    older_than: timedelta | None = None,
    max_bytes: int | None = None,
    everything: bool = False,
) -> PruneReport:
    """Drop what is older than asked, then the oldest until `max_bytes` are left, or `everything`.

    Superseded entries and unreadable lines always go. Runs that use the cache meanwhile lose nothing: the file is
    replaced as a whole, while its writers wait, and they go on in the new one.
    """
    report = PruneReport()
    try:
        rule = _rule(Path(cache_dir), older_than, max_bytes, everything)
        _prune_file(entries_path(Path(cache_dir)), rule, report)
    except OSError as error:
        raise StorageError(f"Cannot prune the cache {str(cache_dir)!r} ({error.strerror}). {_ADVICE}") from error
    return report


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Entry(NamedTuple):
    digest: int
    created: int
    model: str
    size: int
    checked: bool


@dataclass
class _Span:
    """The first and last of the times added."""

    first: datetime | None = None
    last: datetime | None = None

    def add(self, created: int) -> None:
        moment = datetime.fromtimestamp(created, UTC)
        self.first = moment if self.first is None else min(self.first, moment)
        self.last = moment if self.last is None else max(self.last, moment)


def _parse(line: bytes) -> _Entry | None:
    key = entry_key(line)
    entry = None if key is None else read_entry(line)
    if key is None or entry is None:
        return None
    try:
        return _Entry(
            key_digest(key), int(entry["created"]), str(entry["model"]), len(line) + 1, checked="check" in entry
        )
    except (ValueError, TypeError):
        return None


def _all_lines(cache_dir: Path) -> Iterator[bytes]:
    """Every line, the unreadable ones included."""
    try:
        file = entries_path(cache_dir).open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            yield line.removesuffix(b"\n")


# ── pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Rule:
    """Which entries stay: all newer than `oldest`, and of that very second as many as fit into `room`."""

    oldest: float
    room: float = float("inf")

    def keeps(self, entry: _Entry) -> bool:
        if entry.created == self.oldest:
            self.room -= entry.size
            return self.room >= 0
        return entry.created > self.oldest


def _rule(cache_dir: Path, older_than: timedelta | None, max_bytes: int | None, everything: bool) -> _Rule:
    if everything:
        return _Rule(float("inf"), 0)
    rule = _Rule(float("-inf") if older_than is None else time.time() - older_than.total_seconds())
    return rule if max_bytes is None else _newest_that_fit(cache_dir, rule, max_bytes)


def _newest_that_fit(cache_dir: Path, rule: _Rule, max_bytes: int) -> _Rule:
    seen, sizes = DigestMap(), Counter[int]()
    for entry in map(_parse, _all_lines(cache_dir)):
        if entry is not None and rule.keeps(entry) and entry.digest not in seen:
            seen.put(entry.digest, 0)
            sizes[entry.created] += entry.size
    for created in sorted(sizes, reverse=True):
        if sizes[created] > max_bytes:
            return _Rule(created, max_bytes)
        max_bytes -= sizes[created]
    return rule


def _prune_file(path: Path, rule: _Rule, report: PruneReport) -> None:
    with _held(path) as file:
        if file is None:
            return
        total, keep = _choose(file, rule)
        report.kept += len(keep)
        report.removed += total - len(keep)
        report.bytes_before += file.end
        if not keep:
            path.unlink()
        elif len(keep) == total:
            report.bytes_after += file.end
        else:
            report.bytes_after += _replace(file, keep)


def _entries(file: GrowingFile) -> Iterator[tuple[int, bytes, _Entry | None]]:
    """Each whole line that is not empty, with its offset and what it holds."""
    offset = 0
    for line in file.lines():
        if line != b"\n":
            yield offset, line, _parse(line.removesuffix(b"\n"))
        offset += len(line)


def _choose(file: GrowingFile, rule: _Rule) -> tuple[int, DigestMap]:
    """How many lines there are, and by digest, where the entries start that stay."""
    total, keep = 0, DigestMap()
    for offset, _, entry in _entries(file):
        total += 1
        if entry is not None and rule.keeps(entry):
            keep.put(entry.digest, offset)  # of several with one key, the last
    return total, keep


def _replace(file: GrowingFile, keep: DigestMap) -> int:
    """Put a file with only the kept entries in the place of the old one; its size."""
    with Draft(file.path, advice=_ADVICE, mode=stat.S_IMODE(file.path.stat().st_mode)) as draft:
        for offset, line, entry in _entries(file):
            if entry is not None and keep.get(entry.digest) == offset:
                draft.write(line)
    return file.path.stat().st_size


@contextmanager
def _held(path: Path) -> Iterator[GrowingFile | None]:
    """The file, opened and held alone: its writers wait. None where there is no such file."""
    while path.exists():
        with GrowingFile(path, advice=_ADVICE) as file, file.alone():
            if not file.is_replaced:
                yield file
                return
    yield None
