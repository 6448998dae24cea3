# SPDX-License-Identifier: Apache-2.0
"""`episodes.jsonl`: the turns of episodes that are not finished yet, so that none is played, or paid for, twice.

    {"schema":2,"id":"…","response_index":0,"turn":0,"opening":{…},"check":"…"}   what the world began with
    {"schema":2,"id":"…","response_index":0,"turn":3,"reply":{…},"check":"…"}     what the model said
    {"schema":2,"id":"…","response_index":0,"turn":3,"answer":{…},"check":"…"}    what came back from the world

An answer or an opening that says `cut_off` is of a turn of the world that is not over: what it has noted so far.
An opening is on disk before the model is asked, a reply before its tools are run, and an answer before the next request
is sent. Where one of them occurs twice, an episode was begun again there: the later lines hold, and all that came after
the earlier one is void. When an episode is finished, its rollout has all of this; its turns are dropped when the run
ends.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self, cast

from reward_kit.models import SCHEMA_VERSION
from reward_kit.storage.files import GrowingFile
from reward_kit.storage.row_json import forgiving_json, plain_json
from reward_kit.utils import exact_json
from reward_kit.utils.batcher import Batcher
from reward_kit.utils.checksums import check_line, sealed_line

__all__ = ["EPISODES", "RecordedTurn", "Recording", "TurnJournal", "Turns", "turn_line"]

EPISODES = "episodes.jsonl"
"""The name of the file in a run directory."""

_HEAD = re.compile(
    rb'\{"schema":\d+,"id":("[^"\\]*(?:\\.[^"\\]*)*"),"response_index":(\d+),"turn":(\d+),"(opening|reply|answer)":'
)


class RecordedTurn(NamedTuple):
    """One turn as it is on disk."""

    reply: dict[str, Any]
    answer: dict[str, Any] | None
    """None where the run ended before the world had answered."""


class Recording(NamedTuple):
    """An episode as far as it is on disk."""

    opening: dict[str, Any] | None
    """What the world began with; None where that is not known."""
    turns: list[RecordedTurn]
    offered: list[dict[str, Any]] | None = None
    """The tools that were offered behind the last of the turns, where that is known."""


class Turns(Protocol):
    """Where an episode keeps its turns: this file, or what stands for it in another process."""

    def put_opening(self, sample_id: str, draw: int, opening: Mapping[str, Any]) -> None:
        """Note what the world began with: the episode begins, or begins again."""
        ...

    def put_reply(self, sample_id: str, draw: int, turn: int, reply: Mapping[str, Any]) -> None:
        """Note what the model said."""
        ...

    def put_answer(self, sample_id: str, draw: int, turn: int, answer: Mapping[str, Any]) -> None:
        """Note what came back from the world."""
        ...

    def on_disk(self) -> Awaitable[None]:
        """Come back when all that was put is on disk."""
        ...

    def recording_of(self, sample_id: str, draw: int) -> Recording | None:
        """An episode that was interrupted, as far as it came; None where it has not begun."""
        ...


class _Place(NamedTuple):
    turn: int
    what: Literal["opening", "reply", "answer"]
    offset: int
    length: int


class TurnJournal:
    """The open file. Lines of one turn of the event loop are written together."""

    def __init__(self, path: Path, *, always_on_disk: bool = False) -> None:
        """Open `path`, creating it; a torn last line is cut off. `always_on_disk`: lines reach the disk as written."""
        self.path = path
        self._file = GrowingFile(path, always_on_disk=always_on_disk)
        self._file.cut_torn_line()
        self._found = self._scan()
        self.write_before: Callable[[], None] = lambda: None
        """Writes what must be there before the lines are: an answer that they tell of would else be paid for again."""
        batcher = Batcher[bytes](self._write)
        self.put = batcher.add
        """Note a line that `turn_line` made."""
        self._dealt = batcher.dealt
        self.flush = batcher.flush
        """Write now what was put."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put_opening(self, sample_id: str, draw: int, opening: Mapping[str, Any]) -> None:
        """Note what the world began with."""
        self.put(turn_line(sample_id, draw, 0, b"opening", opening))

    def put_reply(self, sample_id: str, draw: int, turn: int, reply: Mapping[str, Any]) -> None:
        """Note what the model said."""
        self.put(turn_line(sample_id, draw, turn, b"reply", reply))

    def put_answer(self, sample_id: str, draw: int, turn: int, answer: Mapping[str, Any]) -> None:
        """Note what came back from the world."""
        self.put(turn_line(sample_id, draw, turn, b"answer", answer))

    def on_disk(self) -> Awaitable[None]:
        """Come back when all that was put is on disk."""
        return self._dealt()

    def look_again(self) -> None:
        """Let `recording_of` know what was put since the file was opened."""
        self.flush()
        self._found = self._scan()

    def recording_of(self, sample_id: str, draw: int) -> Recording | None:
        """What was on disk of an episode when the file was opened, up to the first line that is missing."""
        opening: dict[str, Any] | None = None
        turns: list[RecordedTurn] = []
        for place in self._found.get((sample_id, draw), ()):
            fields = self._read(place)
            if fields is None or place.turn != len(turns) - (place.what == "answer"):
                break
            if place.what == "opening":
                opening = fields["opening"]
            elif place.what == "reply":
                if turns and turns[-1].answer is None:
                    break
                turns.append(RecordedTurn(fields["reply"], None))
            else:
                turns[-1] = turns[-1]._replace(answer=fields["answer"])
        return Recording(opening, turns) if turns or opening is not None else None

    def unfinished(self, is_told: Callable[[str, int], bool]) -> Iterator[Recording]:
        """The episodes on disk of which no rollout tells."""
        self.look_again()
        for key in self._found:
            if not is_told(*key) and (recording := self.recording_of(*key)) is not None:
                yield recording

    def drop(self, is_finished: Callable[[str, int], bool]) -> None:
        """Keep only the turns of episodes that are not finished; without any, remove the file."""
        self.flush()
        kept = {key: places for key, places in self._scan().items() if not is_finished(*key)}
        if not kept:
            self.path.unlink(missing_ok=True)
            return
        places = sorted((place for group in kept.values() for place in group), key=lambda place: place.offset)
        self._file.write_anew(self._file.read(place.length, place.offset) for place in places)

    def sync(self) -> None:
        """Ask the operating system to put everything written so far on the disk itself."""
        self._file.sync()

    def close(self) -> None:
        """Write what is left and let go of the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def _write(self, lines: list[bytes]) -> None:
        self.write_before()
        self._file.append(b"".join(lines))

    def _scan(self) -> dict[tuple[str, int], list[_Place]]:
        """Where the lines of each episode are. A line that is damaged ends what is known of its episode."""
        found: dict[tuple[str, int], list[_Place]] = {}
        offset = 0
        for line in self._file.lines():
            head = _HEAD.match(line)
            if head is not None and check_line(line):
                key = exact_json.loads(head[1]), int(head[2])
                what = cast("Literal['opening', 'reply', 'answer']", head[4].decode())
                place = _Place(int(head[3]), what, offset, len(line))
                places = found.setdefault(key, [])
                while places and _begins_again(places[-1], place):
                    places.pop()
                places.append(place)
            offset += len(line)
        return found

    def _read(self, place: _Place) -> dict[str, Any] | None:
        line = self._file.read(place.length, place.offset)
        fields: dict[str, Any] | None = exact_json.loads(line) if check_line(line) else None
        return fields


def _begins_again(earlier: _Place, place: _Place) -> bool:
    """Whether a line makes an earlier one of its episode void: what it tells was told before, or came after it."""
    if place.what == "opening":
        return True
    return place.what == "reply" and earlier.what != "opening" and earlier.turn >= place.turn


def turn_line(sample_id: str, draw: int, turn: int, what: bytes, fields: Mapping[str, Any]) -> bytes:
    """One line of the file; `what` is `opening`, `reply` or `answer`."""
    try:
        body = plain_json(dict(fields))
    except TypeError:
        body = forgiving_json(dict(fields))
    head = (SCHEMA_VERSION, exact_json.dumps(sample_id), draw, turn, what, body)
    return sealed_line(b'{"schema":%d,"id":%b,"response_index":%d,"turn":%d,"%b":%b}\n' % head)
