# SPDX-License-Identifier: Apache-2.0
"""Who a row is: ids from content, the places where ids were first seen, and digests that notice a changed row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel

from reward_kit.datasets.rows import BadRow, Origin, Row
from reward_kit.models import Message, Sample, set_fields
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Places", "VariantPlace", "Variants", "content_digest", "content_id", "prompt_digest"]

_LINE_BITS = 40
"""A place is packed into one number: the origin above these bits, the line below."""

_COUNT_BITS = 24
"""A sample's position and the number of its answers are packed alike: the number takes these bits."""


def content_id(columns: Mapping[str, Any]) -> str:
    """The hash of columns, the same in every process and for every order of keys."""
    return _hash(columns)


def content_digest(sample: Sample) -> str:
    """A digest of what is asked and what a right answer looks like, wherever the sample stands and whatever its id."""
    messages = [*map(set_fields, sample.messages)]
    text = () if sample.ground_truth_text is None else (sample.ground_truth_text,)
    return _hash([messages, sample.ground_truth, sample.columns, sample.tools, *text])


def prompt_digest(messages: list[Message], ground_truth: Any) -> int:
    """A 63-bit digest of what is asked, to notice rows that share an id and ask different things."""
    return int(_hash([[*map(set_fields, messages)], ground_truth]), 16) >> 1


def _hash(content: Any) -> str:
    try:
        canonical = orjson.dumps(content, default=_fields, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer of more than 64 bits, or text that is not valid Unicode
        text = json.dumps(content, default=_fields, sort_keys=True, ensure_ascii=False)
        canonical = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(canonical).hexdigest()[:16]


def _fields(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.__dict__
    raise TypeError(f"{type(value).__name__} is not plain data")


class Places:
    """Where each id was first seen, in some 20 to 40 bytes per id whatever its length."""

    def __init__(self) -> None:
        self._places = DigestMap()
        self._origins: list[Origin] = []
        self._repeats: dict[str, int] = {}

    def claim(self, name: str, row: Row) -> str | None:
        """Take `name` for this row; where it is taken already, the place of the row that has it."""
        if not self._origins or self._origins[-1] is not row.origin:
            self._origins.append(row.origin)
        place = self._places.put_first(digest64(name), (len(self._origins) - 1) << _LINE_BITS | row.number)
        if place < 0:
            return None
        return Row(self._origins[place >> _LINE_BITS], place & ((1 << _LINE_BITS) - 1), {}).where

    def claim_content(self, content: str, row: Row) -> str:
        """An id that is `content`, or `content` with the number of the repetition behind it."""
        name = content
        while self.claim(name, row):
            self._repeats[content] = self._repeats.get(content, 0) + 1
            name = f"{content}-{self._repeats[content]}"
        return name


class VariantPlace(NamedTuple):
    """Where the answers of a row belong."""

    position: int
    """The position of the sample they answer."""
    response_index: int
    """The index of the first of them."""


class Variants:
    """Numbers the answers of each sample across rows that share an id, in a bounded number of bytes per answer."""

    def __init__(self) -> None:
        self._samples = DigestMap()
        self._prompts = DigestMap()
        self._taken = Places()

    def __len__(self) -> int:
        """How many samples were seen."""
        return len(self._samples)

    def knows(self, name: str) -> bool:
        """Whether a sample of this id was seen."""
        return self._samples.get(digest64(name)) >= 0

    def place(self, name: str, prompt: int, index: int | None, answers: int, row: Row) -> VariantPlace:
        """Place a row's answers: at `index` where the row names one, else behind those its sample has already."""
        key = digest64(name)
        seen = self._samples.get(key, len(self._samples) << _COUNT_BITS)
        position, count = seen >> _COUNT_BITS, seen & ((1 << _COUNT_BITS) - 1)
        if count and self._prompts.get(key) != prompt:
            raise BadRow(
                f"id {name!r} was used before for another conversation or ground truth; rows with one id must share "
                "both"
            )
        start = count if index is None else index
        for taken in range(start, start + answers):
            if first := self._taken.claim(f"{taken}\0{name}", row):
                raise BadRow(
                    f"answer {taken} of id {name!r} is already given by {first}; answers need indexes of their own"
                )
        self._samples.put(key, position << _COUNT_BITS | count + answers)
        self._prompts.put(key, prompt)
        return VariantPlace(position, start)
