# SPDX-License-Identifier: Apache-2.0
"""`batches.jsonl`: what became of each file of requests, so that none is submitted, or paid for, twice.

    {"schema":2,"event":"begun","time":"…","run":"9f…", …}            once: the id that the run's batches carry
    {"schema":2,"event":"prepared","time":"…","part":"0001", …}       the file of requests is whole, on this disk
    … uploaded → submitting → submitted → ended → fetched → settled → absorbed

A line is on the disk itself before the next step is taken. `submitting` stands there before the request is sent: where
no `submitted` follows, the batch is looked for by its label. `settled` says which answers are missing, and names the
file in which they are asked for again. `absorbed`: every answer is in `rollouts.jsonl`. A part can also be `declined`
(the provider has no room for it now) and submitted again, or be `dropped`: then its requests are owed again.

Lines are numbered, so that one that is missing is noticed. What is missing at the end nobody would notice there: so a
file beside the requests, `0001.handed-over.json`, says that a part is about to be submitted, as long as it may have
been.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import orjson

from reward_kit.errors import StorageError
from reward_kit.models import SCHEMA_VERSION
from reward_kit.storage.files import Draft, GrowingFile
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_document, check_line, sealed_document, sealed_line
from reward_kit.utils.clock import now

__all__ = ["BATCHES", "BATCH_FILES", "BatchJournal", "HandedOver", "Part"]

BATCHES = "batches.jsonl"
"""The name of the file in a run directory."""
BATCH_FILES = "batches"
"""The folder beside it, with the files of requests and answers, as long as they are needed."""


@dataclass
class Part:
    """One file of requests, and how far it has come."""

    name: str
    requests: int = 0
    size: int = 0
    sha256: str = ""
    settings: str = ""
    """A digest of what the rollouts depend on: requests made for other settings are of no use."""
    attempt: int = 1
    most_cost: float = 0.0
    """What it may cost at most, where there was a limit to keep."""
    files: list[str] = field(default_factory=list)
    """The provider's names of the file, the one that counts last: it may have been handed over again."""
    submission: int = 0
    """How often it was begun to submit it anew, having been declined."""
    submitting: bool = False
    asked: str = ""
    """When this submission was begun."""
    batch: str | None = None
    """The provider's id of the batch."""
    batches: list[str] = field(default_factory=list)
    """All ids that this part has had, also of submissions that were declined."""
    end: str | None = None
    fetched: list[dict[str, Any]] | None = None
    """The files of answers: name, size and digest."""
    settled: bool = False
    repeated_in: str | None = None
    absorbed: bool = False
    dropped: bool = False
    noted: dict[str, Any] = field(default_factory=dict)
    """What was last noted of it beside the above: counts, and the provider's words."""

    @property
    def is_live(self) -> bool:
        """Whether its requests are still asked for, or its answers not yet all used."""
        return not (self.absorbed or self.dropped)

    @property
    def is_under_way(self) -> bool:
        """Whether it was, or may have been, submitted, and its answers are not in the rollouts yet."""
        return self.is_live and self.submitting

    @property
    def is_in_doubt(self) -> bool:
        """Whether the provider was, or was about to be, asked for its batch, and never told the id."""
        return self.is_under_way and self.batch is None

    @property
    def file(self) -> str | None:
        """The provider's name of the file."""
        return self.files[-1] if self.files else None

    @property
    def label(self) -> str:
        """What its batch is called in the provider's books: number, content, and which submission this is."""
        return f"{self.name}-{self.sha256[:16]}-{self.submission}"


class HandedOver(NamedTuple):
    """That a part was about to be submitted, as it stands beside its requests."""

    run: str
    """The id that the run's batches carry."""
    sha256: str
    """Of the requests."""
    submission: int
    file: str
    """The provider's name of the file."""
    asked: str


class BatchJournal:
    """The open file. Small: a few lines for each file of requests."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open `path`, creating it unless it is only to be read; a torn last line is cut off."""
        self.path = path
        self.run: str | None = None
        """The id that this run's batches carry, once it has one."""
        self.parts: dict[str, Part] = {}
        """By name, in the order in which they were made."""
        self._lines = 0
        self._file: GrowingFile | None = None
        if read_only and not path.exists():
            return
        self._file = GrowingFile(path, read_only=read_only, always_on_disk=True)
        self._read(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def live(self) -> list[Part]:
        """The parts whose answers are not all in the rollouts yet."""
        return [part for part in self.parts.values() if part.is_live]

    @property
    def under_way(self) -> list[Part]:
        """Those that were, or may have been, submitted."""
        return [part for part in self.parts.values() if part.is_under_way]

    @property
    def folder(self) -> Path:
        """Where the files of requests and answers are."""
        return self.path.with_name(BATCH_FILES)

    def requests_path(self, name: str) -> Path:
        """Where the requests of a part are."""
        return self.folder / f"{name}.requests.jsonl"

    def answers_path(self, name: str, number: int) -> Path:
        """Where the answers of a part are; a provider may give them in several files."""
        return self.folder / f"{name}.answers-{number}.jsonl"

    def note(self, event: str, part: str | None = None, **facts: Any) -> None:
        """Write an event down; when this returns, it is on the disk itself."""
        fields = {"schema": SCHEMA_VERSION, "line": self._lines + 1, "event": event, "time": now()}
        fields |= ({} if part is None else {"part": part}) | facts
        if self._file is None:
            raise AssertionError("a file that is only read was opened")
        if part is not None and event == "submitting":
            self._hand_over(self.parts[part], fields)
        self._file.append(sealed_line(orjson.dumps(fields) + b"\n"))
        self._lines += 1
        self._take(fields)
        if part is not None and event in _NOT_TAKEN:
            self._handed_over_path(part).unlink(missing_ok=True)

    def _handed_over_path(self, name: str) -> Path:
        return self.folder / f"{name}.handed-over.json"

    def _hand_over(self, part: Part, fields: Mapping[str, Any]) -> None:
        told = HandedOver(str(self.run), part.sha256, part.submission, str(part.file), part.asked or fields["time"])
        with Draft(self._handed_over_path(part.name), make_folder=True) as draft:
            draft.write(sealed_document(told._asdict()))

    def handed_over(self, part: Part) -> HandedOver | None:
        """Whether the part may have been submitted though no line tells it: the end of this file is missing then."""
        path = self._handed_over_path(part.name)
        if part.submitting or not path.exists():
            return None
        try:
            fields = orjson.loads(path.read_bytes())
            told = HandedOver(*(fields[name] for name in HandedOver._fields))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            fields, told = {}, None
        if told is None or check_document(fields) is not True or told.sha256 != part.sha256:
            raise StorageError(
                f"{str(path)!r} says that requests were handed over to the provider, and {str(self.path)!r} does not "
                "tell of them: one of the two is damaged or was cut off. Restore both. Or look at the provider whether "
                "a batch of this run is there; where none is, remove the first file: then they are submitted again."
            )
        return told if told.submission >= part.submission else None

    def remove_files(self) -> None:
        """Remove the files of requests and answers, and the folder, unless somebody else's files are in it."""
        for shape in ("*.requests.jsonl*", "*.answers-*.jsonl*", "*.handed-over.json*"):
            for path in self.folder.glob(shape):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not empty, or was never made
            self.folder.rmdir()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _read(self, file: GrowingFile) -> None:
        if not file.read_only:
            file.cut_torn_line()
        for number, line in enumerate(file.lines(), start=1):
            fields = exact_json.loads(line) if check_line(line) else {}
            if fields.get("line", number if fields else 0) != number:
                raise StorageError(
                    f"{str(self.path)!r}, line {number}, is damaged: it is not what was written there. Restore the "
                    "file. Without it reward-kit does not know which batches are running; the provider's own list "
                    "shows them."
                )
            self._lines = number
            self._take(fields)

    def _take(self, fields: Mapping[str, Any]) -> None:
        event, name = fields["event"], fields.get("part")
        if event == "begun":
            self.run = fields["run"]
        elif event == "prepared":
            self._add(fields)
        elif name in self.parts:
            self._advance(self.parts[name], event, fields)

    def _add(self, fields: Mapping[str, Any]) -> None:
        known = {"requests", "size", "sha256", "settings", "attempt", "most_cost"}
        values = {name: value for name, value in fields.items() if name in known}
        self.parts[fields["part"]] = Part(fields["part"], **values)

    def _advance(self, part: Part, event: str, fields: Mapping[str, Any]) -> None:
        for name, value in _CHANGES.get(event, {}).items():
            setattr(part, name, fields[name] if value is ... else value)
        if event == "uploaded":
            part.files.append(fields["file"])
        elif event == "submitting":
            part.asked = part.asked or fields.get("asked", fields["time"])
        elif event == "submitted":
            part.batches.append(fields["batch"])
        elif event == "declined":
            part.submission += 1
        if repeat := fields.get("repeat"):
            part.repeated_in = repeat["part"]
            self._add(repeat)
        part.noted |= {key: fields[key] for key in ("total", "answered", "failed", "words", "reason") if key in fields}


_CHANGES: dict[str, dict[str, Any]] = {
    "submitting": {"submitting": True},
    "submitted": {"batch": ...},
    "refused": {"submitting": False, "asked": ""},
    "declined": {"submitting": False, "asked": "", "batch": None, "end": None},
    "ended": {"end": ...},
    "fetched": {"fetched": ...},
    "settled": {"settled": True},
    "absorbed": {"absorbed": True},
    "dropped": {"dropped": True},
}
"""What each event changes of a part; `...` stands for the event's own field of that name."""
_NOT_TAKEN = frozenset({"refused", "declined"})
"""After these, nobody needs to look for a batch."""
