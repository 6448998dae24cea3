# SPDX-License-Identifier: Apache-2.0
"""One line of a journal.

    {"schema":2,"id":"…","response_index":0,"position":0,"content":"…","status":"ok","cost":0.0, …, "check":"…"}

Every line opens with its *head*, always in this order, so that finding out what a file holds does not mean parsing it,
and ends with the checksum of all that stands before, which the journal adds as it writes. Lines of schema 1 have none.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

import orjson

from reward_kit.models import SCHEMA_VERSION
from reward_kit.storage.files import GrowingFile
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line, sealed_line, unsealed

__all__ = [
    "HEAD",
    "OPENING",
    "STATUSES",
    "STATUS_CODES",
    "Entry",
    "Head",
    "Line",
    "RawHead",
    "Status",
    "body_start",
    "content_in",
    "ends_foreign",
    "is_whole",
    "moved_to",
    "position_in",
    "raw_head",
]

Status = Literal["ok", "failed", "retry"]
"""Done; failed for good; failed in a way that entering the run again may mend."""

STATUS_CODES = {b"ok": 0, b"failed": 1, b"retry": 2}
"""How a status is kept in an index."""
STATUSES: tuple[Status, ...] = ("ok", "failed", "retry")
"""The statuses by their codes."""
OPENING = b'{"schema":'
"""How every line begins."""
HEAD = re.compile(
    rb'\{"schema":(\d+),"id":("[^"\\]*(?:\\.[^"\\]*)*"),"response_index":(\d+),"position":(\d+),'
    rb'"content":"([0-9a-f]*)","status":"(ok|failed|retry)","cost":(null|[-+0-9.eE]+)[,}]'
)
"""The head: schema, id, response index, position, content, status, cost."""


class Head(NamedTuple):
    """What opens a line: whose it is, and how it went."""

    id: str
    response_index: int
    position: int
    """Where the sample stands in its dataset."""
    content: str
    """Digest of the sample's content: a row that changed under the same id is noticed."""
    status: Status
    cost: float | None

    def line(self, body: bytes, schema: int = SCHEMA_VERSION) -> bytes:
        """The whole line: this head, then the fields of `body` (a JSON object)."""
        cost = b"null" if self.cost is None else repr(float(self.cost)).encode()
        head = b'{"schema":%d,"id":%b,"response_index":%d,"position":%d,"content":"%b","status":"%b","cost":%b' % (
            schema,
            orjson.dumps(self.id),
            self.response_index,
            self.position,
            self.content.encode(),
            self.status.encode(),
            cost,
        )
        return head + (b"," if len(body) > len(b"{}") else b"") + body[1:] + b"\n"


class RawHead(NamedTuple):
    """A head as it stands in the file: enough to tell lines apart, at a fraction of the cost of parsing it."""

    id: bytes
    response_index: int
    position: int
    content: bytes
    status: bytes
    cost: bytes

    def parsed(self) -> Head:
        """The same, as plain values."""
        return Head(
            id=orjson.loads(self.id),
            response_index=self.response_index,
            position=self.position,
            content=self.content.decode(),
            status=STATUSES[STATUS_CODES[self.status]],
            cost=None if self.cost == b"null" else float(self.cost),
        )


def ends_foreign(file: GrowingFile) -> bool:
    """Whether something is behind the last whole line that is no line of a run, as a crash may leave it."""
    tail = file.read(len(OPENING), file.end)
    return not OPENING.startswith(tail) and bool(tail.strip(b"\0"))  # zeros: left by a loss of power


def raw_head(groups: tuple[bytes, ...]) -> RawHead:
    """The head whose parts are the groups of `HEAD`."""
    _, sample_id, index, position, content, status, cost = groups
    return RawHead(sample_id, int(index), int(position), content, status, cost)


Line: TypeAlias = tuple[int, int, bytes]
"""A line as it is written, behind its place: the sample's position and the response index."""


class Entry(NamedTuple):
    """A line in its two parts."""

    head: Head
    body: bytes
    schema: int = SCHEMA_VERSION

    def line(self) -> Line:
        """The line as it is written."""
        return self.head.position, self.head.response_index, self.head.line(self.body, self.schema)


def is_whole(line: bytes, head: re.Pattern[bytes] = HEAD) -> bool | None:
    """True: the line is as it was written. False: it is damaged. None: it is of a time before checksums.

    `head`: how lines of its file begin.
    """
    checked = check_line(line)
    if checked is not None:
        return checked
    if not line.startswith(b'{"schema":1,'):
        return False
    try:
        return None if head.match(line) and isinstance(exact_json.loads(line), dict) else False
    except orjson.JSONDecodeError:
        return False


def body_start(line: bytes) -> int:
    """Where the fields behind a line's head begin; at the closing brace where there are none."""
    match = HEAD.match(line)
    return 0 if match is None else match.end() - line[match.end() - 1 : match.end()].count(b"}")


def position_in(line: bytes) -> int | None:
    """Where the sample of a line stands, by the line's head; None for what is not a line of a journal."""
    match = HEAD.match(line)
    return None if match is None else int(match[4])


def content_in(line: bytes) -> str | None:
    """The digest of the sample's content, by the line's head; None for what is not a line of a journal."""
    match = HEAD.match(line)
    return None if match is None else match[5].decode()


def moved_to(position: int, line: bytes) -> bytes:
    """The line with its head saying that its sample stands at `position`."""
    match = HEAD.match(line)
    if match is None or int(match[4]) == position:
        return line
    was_sealed = check_line(line) is not None
    line = b"%b%d%b" % (line[: match.start(4)], position, unsealed(line)[match.end(4) :])
    return sealed_line(line) if was_sealed else line
