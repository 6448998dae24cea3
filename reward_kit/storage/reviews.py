# SPDX-License-Identifier: Apache-2.0
"""`reviews.jsonl`: what people said of verdicts, one line per decision, beside the results that it is about.

    {"schema":2,"line":7,"id":"…","response_index":0,"says":"wrong","note":"…","reviewer":"ada","at":"…", …,"check":"…"}

A line is written in one go under a lock and is on the disk when `append` returns, so several processes may write at a
time and `kill -9` costs at most the decision that was just made. Nothing is ever changed: who thinks again adds a line.
A changed line is an error. Lines are numbered, so that one that is missing, or stands elsewhere, is told of; so are the
last ones, by the count in `reviews.jsonl.count`. Who merges two files, or takes a line out, may go on with what is
there. The files of the run are not touched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import orjson

from reward_kit.errors import StorageError
from reward_kit.models import READABLE_SCHEMAS, SCHEMA_VERSION
from reward_kit.storage.files import Draft, GrowingFile
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line, sealed_line

__all__ = [
    "COUNT_OF_REVIEWS",
    "REVIEWS",
    "Choice",
    "Review",
    "Says",
    "append_review",
    "last_words",
    "read_reviews",
    "reviews_path",
]

_log = logging.getLogger(__name__)

REVIEWS = "reviews.jsonl"
"""The file's name in a run directory."""
COUNT_OF_REVIEWS = f"{REVIEWS}.count"
"""Of the file that says how many lines were written to it."""

Says = Literal["right", "wrong", "unclear"]
"""What a person says of a verdict."""
Choice = Literal["random", "disagreement", "browsing"]
"""How the item was chosen: by lot; by lot among those where a fault is likelier; or by the reviewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One decision."""

    id: str
    """The sample's id."""
    response_index: int
    says: Says
    note: str
    reviewer: str
    at: str
    """When: UTC, ISO 8601."""
    score: float | None
    """The verdict that was looked at."""
    passed: bool | None
    """Whether that was a pass; None where nobody said which scores pass."""
    reason: str
    """What the reward gave as its reason."""
    results_digest: str
    """Which results were looked at: the digest of the run's results, or of the file."""
    answer_digest: str
    """Digest of the answer that was looked at: a review says nothing of another answer in its place."""
    chosen: Choice
    probability: float | None
    """The probability of this draw; None where the reviewer chose."""
    pool: int | None
    """How many records the draw was made from; None where the reviewer chose."""
    threshold: float | None = None
    """The score from which on an answer passes, as the reviewer was shown it beside a graded score. None: scores were
    only 0 and 1, or none was shown; then `passed` is None, too, and the review says nothing of pass or failure."""

    @property
    def key(self) -> tuple[str, int]:
        """Which record it is about."""
        return self.id, self.response_index

    @property
    def human_passes(self) -> bool | None:
        """Whether the reviewer thinks that the answer passes; None where that is not known."""
        if self.passed is None or self.says == "unclear":
            return None
        return self.passed is (self.says == "right")


_ADVICE = (
    "Earlier reviews are kept: make room, or check the permissions of the directory, then review the answer again."
)
_FIELDS = frozenset(field.name for field in fields(Review))
_ADDED = frozenset({"threshold"})
"""Fields that earlier files do not have."""
_SAYS: tuple[Says, ...] = ("right", "wrong", "unclear")


def reviews_path(source: Path) -> Path:
    """Where the reviews of a run directory, of its results.jsonl, or of a Parquet file are."""
    if source.is_dir():
        return source / REVIEWS
    if source.name == "results.jsonl":
        return source.with_name(REVIEWS)
    return source.with_name(f"{source.name}.{REVIEWS}")


def append_review(path: Path, review: Review) -> None:
    """Write a decision down. When this returns, it is on the disk itself."""
    with GrowingFile(path, always_on_disk=True, advice=_ADVICE) as file, file.alone():
        number = 1 + max(sum(1 for _ in file.lines()), _written(path) or 0)  # lines that were lost keep theirs
        file.append(_line(review, number))
        try:
            with Draft(_count_path(path)) as draft:
                draft.write(sealed_line(orjson.dumps({"schema": SCHEMA_VERSION, "lines": number}) + b"\n"))
        except StorageError as error:
            _log.warning("The review is kept. If the last lines of its file are lost, nobody will notice: %s", error)


def _count_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.count")


def _written(path: Path) -> int | None:
    """How many lines were written, as far as that is known; None where what says so is damaged."""
    try:
        line = _count_path(path).read_bytes()
    except FileNotFoundError:  # reviews of an earlier version, or copied without it
        return 0
    except OSError as error:
        raise StorageError(f"Cannot read {str(_count_path(path))!r} ({error.strerror}). Check the path.") from error
    if not line.endswith(b"\n") or not check_line(line):
        return None
    count: int = orjson.loads(line)["lines"]
    return count


def _line(review: Review, number: int) -> bytes:
    values = {"schema": SCHEMA_VERSION, "line": number, **asdict(review)}
    try:
        written = orjson.dumps(values)
    except TypeError:  # text that is not valid Unicode
        plain = {name: _valid(value) if isinstance(value, str) else value for name, value in values.items()}
        written = orjson.dumps(plain)
    return sealed_line(written + b"\n")


def _valid(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def read_reviews(path: Path) -> list[Review]:
    """All decisions, oldest first. None where there is no file; a line that is being written is not there yet."""
    return list(_read(path))


def _read(path: Path) -> Iterator[Review]:
    written = _written(path)  # before the lines: others may be writing
    strange = "" if written is not None else f"{_count_path(path).name!r} beside it is damaged"
    lines = 0
    for line in _lines(path):
        lines += 1
        if not line.endswith(b"\n"):
            strange = strange or f"line {lines} is not whole"
            lines -= 1
            break
        found = _parsed(line, f"Line {lines} of {str(path)!r}")
        if not strange and found.get("line", lines) != lines:
            strange = f"where line {lines} should be is what was written as line {found['line']}"
        yield Review(**{name: found[name] for name in _FIELDS & found.keys()})
    if not strange and lines < (written or 0):
        strange = f"it has {lines} of {written} lines"
    if strange:
        _log.warning(
            "%r is not as it was written: %s. Reviews may be missing, or count twice. Restore it, or go on with those "
            "that are there; without %r beside it, nobody asks how many there were.",
            str(path), strange, _count_path(path).name,
        )  # fmt: skip


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"Cannot read {str(path)!r} ({error.strerror}). Check the path.") from error


def _parsed(line: bytes, which: str) -> dict[str, Any]:
    if not check_line(line):
        raise StorageError(
            f"{which} is damaged: it is not what was written there. Restore the file, or remove that line."
        )
    found: dict[str, Any] = exact_json.loads(line)
    if (
        found.get("schema") not in READABLE_SCHEMAS
        or found.get("says") not in _SAYS
        or not found.keys() >= _FIELDS - _ADDED
    ):
        raise StorageError(
            f"{which} is not a review that this version can read. Upgrade reward-kit, or remove that line."
        )
    return found


def last_words(reviews: Sequence[Review]) -> Mapping[tuple[str, str, int], Review]:
    """The last decision of each reviewer on each record, by reviewer, id and index."""
    return {(review.reviewer, *review.key): review for review in reviews}
