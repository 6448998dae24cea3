# SPDX-License-Identifier: Apache-2.0
"""Making a decision: from the record that a person looked at to a line in `reviews.jsonl`."""

from __future__ import annotations

import base64
import getpass
import hashlib
import hmac
import os
import secrets
from typing import NamedTuple, get_args

import orjson

from reward_kit.errors import DatasetError
from reward_kit.storage.reviews import Choice, Review, Says, append_review, reviews_path
from reward_kit.utils.clock import now_to_the_millisecond
from reward_kit.viewer.reviewing.choosing import Draw, Way
from reward_kit.viewer.reviewing.records import JudgedRecords

__all__ = ["Chosen", "Tickets", "default_reviewer", "make_decision", "open_ticket", "read_open_ticket"]

_LONGEST_NOTE = 10_000
_SEPARATOR = "."
_PARTS = ":"
_SUM = 12
"""Characters of the digest that binds an open ticket to its record."""


class Chosen(NamedTuple):
    """How a record came before somebody's eyes."""

    choice: Choice = "browsing"
    probability: float | None = None
    pool: int | None = None

    @classmethod
    def by(cls, way: Way, draw: Draw) -> Chosen:
        """By a draw."""
        return cls(way, draw.probability, draw.pool)


def default_reviewer() -> str:
    """Who reviews, where nobody says it: the variable `REWARD_KIT_REVIEWER`, else the user of this machine."""
    if named := os.environ.get("REWARD_KIT_REVIEWER", "").strip():
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without names of users
        return "reviewer"


def make_decision(
    records: JudgedRecords, key: tuple[str, int], says: Says, note: str, reviewer: str, chosen: Chosen
) -> Review:
    """Write down what a person says of the verdict on a record, and what that verdict is."""
    (row,) = records.rows([key])
    if row is None or not records.judged[row]:
        what = "is not among the results" if row is None else "has no verdict"
        raise DatasetError(f"The answer {key[1]} of {key[0]!r} {what}: there is nothing to review. Choose another.")
    (verdict,) = records.verdicts([row])
    review = Review(
        id=key[0],
        response_index=key[1],
        says=says,
        note=note.strip()[:_LONGEST_NOTE],
        reviewer=reviewer.strip() or default_reviewer(),
        at=now_to_the_millisecond(),
        score=verdict.score,
        passed=verdict.passed,
        reason=verdict.reason[:_LONGEST_NOTE],
        results_digest=records.results_digest,
        answer_digest=verdict.answer_digest,
        chosen=chosen.choice,
        probability=chosen.probability,
        pool=chosen.pool,
        threshold=records.threshold_shown(row),
    )
    append_review(reviews_path(records.path), review)
    return review


class Tickets:
    """Tickets that bind a record to the draw that chose it, signed with a key that this process alone knows.

    Without one, a page could claim any probability for any record.
    """

    def __init__(self) -> None:
        """Make a key."""
        self._key = secrets.token_bytes(32)

    def issue(self, run: str, reviewer: str, key: tuple[str, int], chosen: Chosen) -> str:
        """A ticket for a record of this run, drawn for this reviewer."""
        content = orjson.dumps([run, reviewer, *key, *chosen])
        return _SEPARATOR.join(base64.urlsafe_b64encode(part).decode() for part in (content, self._signature(content)))

    def read(self, ticket: str, run: str, reviewer: str, key: tuple[str, int]) -> Chosen | None:
        """How the record was drawn; None where the ticket is not one of ours, or is for something else."""
        try:
            content, signature = (base64.urlsafe_b64decode(part) for part in ticket.split(_SEPARATOR))
        except ValueError:
            return None
        if not hmac.compare_digest(signature, self._signature(content)):
            return None
        for_run, for_reviewer, name, index, *chosen = orjson.loads(content)
        return Chosen(*chosen) if (for_run, for_reviewer, name, index) == (run, reviewer, *key) else None

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, hashlib.sha256)


def open_ticket(records: JudgedRecords, reviewer: str, key: tuple[str, int], chosen: Chosen) -> str:
    """A ticket that a person can read and hand to another process: `random:0.05:20:` and a digest.

    It holds for this record, this reviewer and these results. The digest is no signature: it finds a ticket that was
    mistyped, or is used for something else. Who wants to cheat can as well write to the file of reviews.
    """
    content = orjson.dumps([records.results_digest, reviewer, *key, *chosen])
    digest = hashlib.sha256(content).hexdigest()[:_SUM]
    return _PARTS.join((chosen.choice, str(chosen.probability), str(chosen.pool), digest))


def read_open_ticket(ticket: str, records: JudgedRecords, reviewer: str, key: tuple[str, int]) -> Chosen | None:
    """How the record was drawn; None where the ticket is not one, or is for something else."""
    try:
        way, probability, pool, _ = ticket.split(_PARTS)
        chosen = Chosen(next(known for known in get_args(Way) if known == way), float(probability), int(pool))
    except (ValueError, StopIteration):
        return None
    return chosen if ticket == open_ticket(records, reviewer, key, chosen) else None
