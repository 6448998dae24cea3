"""What the lines of one sample have in common, written once: for both of its files, and for all of its rollouts.

    rollouts.jsonl   head │ "sample": …                                 │ the rollout's own fields
    results.jsonl    head │ "user_query": … "messages": [what was asked │ what was answered] … │ "split": …

Writing the sample anew for every line would be most of what a line costs.
"""

from __future__ import annotations

from typing import Any

from orjson import dumps
from pydantic import BaseModel

from reward_kit.models import SCHEMA_VERSION, Sample
from reward_kit.storage.row_json import as_plain

__all__ = ["SampleText", "last_text", "set_fields"]


class SampleText:
    """A sample as its lines tell it: pieces of JSON, for whoever puts a line together."""

    __slots__ = ("_written", "asked", "content", "index_from", "index_to", "last", "sample", "truth", "whole")

    def __init__(self, sample: Sample, content: str) -> None:
        """Of this sample, whose content has this digest. Nothing is written before it is asked for with `of`."""
        self.sample = sample
        self.content = content
        self._written = False

    def of(self, sample: Sample) -> SampleText:
        """The text, with its pieces written; where `sample` is another copy (read back, with other columns), its own.

        Where a piece cannot be written (integers beyond 64 bits, text that is not valid Unicode), a `TypeError`.
        """
        if sample is not self.sample:
            return SampleText(sample, self.content).of(sample)
        if not self._written:
            self._write(sample)
            self._written = True
        return self

    def _write(self, sample: Sample) -> None:
        name, truth, columns = dumps(sample.id), dumps(sample.ground_truth, as_plain), dumps(sample.columns, as_plain)
        messages = dumps([set_fields(message) for message in sample.messages], as_plain)
        split = dumps(sample.split)
        self.index_from = b'{"schema":%d,"id":%b,"response_index":' % (SCHEMA_VERSION, name)
        """The head up to the response index."""
        self.index_to = b',"position":%d,"content":"%b","status":"' % (sample.position, self.content.encode())
        """The head from there to the status."""
        some = b',"ground_truth":%b' % truth if sample.ground_truth is not None else b""
        some += b',"split":%b' % split if sample.split is not None else b""
        tools = b',"tools":%b' % dumps(sample.tools) if sample.tools is not None else b""
        pieces = (name, messages, some, columns, tools, sample.position)
        self.whole = b'{"id":%b,"messages":%b%b,"columns":%b%b,"position":%d}' % pieces
        """All of the sample."""
        said = dumps(last_text(sample, "user")), dumps(last_text(sample, "system"))
        self.asked = b'"user_query":%b,"system_prompt":%b,"messages":%b' % (*said, messages[:-1])
        """A result's first columns. The list of messages is left open."""
        self.truth = truth
        """The ground truth."""
        self.last = b'"split":%b,"columns":%b}\n' % (split, columns) if sample.columns else b'"split":%b}\n' % split
        """A result's last columns, and the end of its line."""


def last_text(sample: Sample, role: str) -> str | None:
    """What the last turn of a role says in a sample's prompt; None where it has no such turn."""
    for message in reversed(sample.messages):
        if message.role == role:
            return message.text
    return None


def set_fields(value: BaseModel) -> dict[str, Any]:
    """The fields that hold something, without the cost of a full dump: nested models are left to the JSON writer."""
    return {name: held for name, held in value.__dict__.items() if held is not None}
