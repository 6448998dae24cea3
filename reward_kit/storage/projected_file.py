# SPDX-License-Identifier: Apache-2.0
"""A second file of the rollouts, in other columns: it grows in the same turn as their journal, and is ordered with it.

    rollouts ══▶ rollouts.jsonl          the state: what a run that is entered again goes by
         └─────▶ commands.jsonl          a projection: what it lacks or has too much is set right from the journal

A crash between the two writes leaves the projection one turn behind; entering the run mends that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from reward_kit.models import Rollout
from reward_kit.storage.files import Draft, GrowingFile
from reward_kit.storage.journal import Journal
from reward_kit.storage.journal_lines import HEAD
from reward_kit.storage.tables import rollout_from_line
from reward_kit.utils.checksums import check_line
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Projected", "ProjectedFile"]

_ADVICE = "The answers are safe: make room, then run the same command again."
_KEY = re.compile(rb'\{"task_id":("[^"\\]*(?:\\.[^"\\]*)*"),"response_index":(\d+),')


class Projected(NamedTuple):
    """A rollout as the other file has it."""

    rollout: Rollout
    """What is scored."""
    line: bytes


class ProjectedFile:
    """The second file of a run."""

    def __init__(self, path: Path, project: Callable[[Rollout], Projected]) -> None:
        """`project` makes the line of a rollout; nothing is touched yet."""
        self.path = path
        self.project = project
        self._file: GrowingFile | None = None

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, projected: Iterable[Projected]) -> None:
        """Write the lines of rollouts that are in their journal."""
        block = b"".join([line for _, line in projected])
        if block:
            self._file = self._file or GrowingFile(self.path, advice=_ADVICE)
            self._file.append(block)

    def mend(self, rollouts: Journal) -> Path | None:
        """Let the file hold what the journal does, whatever a crash or a person left of it.

        Lines that a person changed are not lost: the file as it was is kept beside, under the name that is returned.
        """
        kept = self._keep_what_was_edited()
        if rollouts.holds_lines:
            self._write(self._anew(line, rollouts) for line in rollouts.in_order())
        else:
            self.path.unlink(missing_ok=True)
        return kept

    def compact(self, rollouts: Journal) -> None:
        """Put the lines in the order of the journal, one per key; the later line of a key holds."""
        offsets = self._offsets()

        def ordered() -> Iterator[bytes]:
            with self.path.open("rb") as file:
                for line in rollouts.in_order():
                    offset = offsets.get(_key(HEAD.match(line), 2))
                    if offset < 0:  # spelled differently, as where an id looks like a credential
                        yield self._anew(line, rollouts)
                    else:
                        file.seek(offset)
                        yield file.readline()

        self.close()
        self._write(ordered() if self.path.exists() else (self._anew(line, rollouts) for line in rollouts.in_order()))

    def _anew(self, line: bytes, rollouts: Journal) -> bytes:
        return self.project(rollout_from_line(line, rollouts.samples)).line

    def _offsets(self) -> DigestMap:
        offsets, offset = DigestMap(), 0
        for line in self._lines():
            if (match := _KEY.match(line)) is not None:
                offsets.put(_key(match, 1), offset)
            offset += len(line)
        return offsets

    def _lines(self) -> Sequence[bytes] | Iterator[bytes]:
        if not self.path.exists():
            return ()
        return _lines_of(self.path)

    def _keep_what_was_edited(self) -> Path | None:
        if all(check_line(line) or not line.endswith(b"\n") for line in self._lines()):
            return None
        names = (self.path.with_name(f"{self.path.stem}.edited{number}.jsonl") for number in ("", *range(2, 1000)))
        kept = next(name for name in names if not name.exists())
        self.path.replace(kept)
        return kept

    def _write(self, lines: Iterable[bytes]) -> None:
        with Draft(self.path, advice=_ADVICE) as draft:
            draft.write_all(lines)


def _lines_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _key(match: re.Match[bytes] | None, group: int) -> int:
    return -1 if match is None else digest64(b"%b%b" % (match[group], match[group + 1]))
