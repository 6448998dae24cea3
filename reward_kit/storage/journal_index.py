"""What a journal held when it was opened, in a few bytes a line."""

from __future__ import annotations

import orjson

from reward_kit.storage.journal_lines import STATUS_CODES, STATUSES, RawHead, Status
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["JournalIndex"]

_STATUS_BITS = 2
_CONTENT_MASK = (1 << 63) - 1


class JournalIndex:
    """What a journal held when it was opened: where each key's last line is, and how that attempt went."""

    def __init__(self) -> None:
        self._lines = DigestMap()
        self._contents = DigestMap()
        self.cost = 0.0
        """Money spent on the lines in the file."""
        self.lines = 0
        """Lines in the file, superseded ones included."""
        self._last = (b"", -1, -1)
        self._samples = 0
        self._rises = True

    def __len__(self) -> int:
        return len(self._lines)

    def note(self, line: RawHead, offset: int) -> None:
        """Take account of a line at `offset`."""
        key = digest64(b"%b%d" % (line.id, line.response_index))
        self._lines.put(key, offset << _STATUS_BITS | STATUS_CODES[line.status])
        self._contents.put(digest64(line.id), _content_number(line.content))
        self.cost += 0.0 if line.cost == b"null" else float(line.cost)
        self.lines += 1
        self._note_order(line)

    def _note_order(self, line: RawHead) -> None:
        sample, position, index = self._last
        if line.id == sample:
            self._rises = self._rises and line.position == position and line.response_index > index
        else:
            self._rises = self._rises and line.position > position
            self._samples += 1
        self._last = (line.id, line.position, line.response_index)

    @property
    def is_in_order(self) -> bool:
        """Whether the file holds one line a key, in dataset order, each sample's lines together."""
        return self._rises and self._samples == len(self._contents)

    def status(self, sample_id: str, response_index: int) -> Status | None:
        """How that attempt went, or None when there is no line for it."""
        packed = self._lines.get(_key(sample_id, response_index)) if self.lines else -1
        return None if packed < 0 else STATUSES[packed & (1 << _STATUS_BITS) - 1]

    def offset(self, sample_id: str, response_index: int) -> int | None:
        """Where that attempt's line begins."""
        packed = self._lines.get(_key(sample_id, response_index))
        return None if packed < 0 else packed >> _STATUS_BITS

    def has_other_content(self, sample_id: str, content: str) -> bool:
        """Whether lines of this id were made from a sample with other content."""
        if not self.lines:
            return False
        known = self._contents.get(digest64(orjson.dumps(sample_id)))
        return known not in (-1, _content_number(content.encode()))


def _key(sample_id: str, response_index: int) -> int:
    return digest64(b"%b%d" % (orjson.dumps(sample_id), response_index))


def _content_number(content: bytes) -> int:
    return int(content or b"0", 16) & _CONTENT_MASK
