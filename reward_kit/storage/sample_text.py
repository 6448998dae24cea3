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

    __slots__ = (
        "_written", "asked", "between", "content", "index_from", "index_to", "last", "position", "sample", "truth",
        "whole",
    )  # fmt: skip

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
        told = sample.__dict__  # read in half the time of the model's attributes
        self.position = told["position"]
        name, messages = dumps(told["id"]), dumps([set_fields(message) for message in told["messages"]], as_plain)
        truth, columns = dumps(told["ground_truth"], as_plain), dumps(told["columns"], as_plain)
        split, tools = told["split"], told["tools"]
        self.index_from = b'{"schema":%d,"id":%b,"response_index":' % (SCHEMA_VERSION, name)
        """The head up to the response index."""
        self.index_to = b',"position":%d,"content":"%b","status":"' % (self.position, self.content.encode())
        """The head from there to the status."""
        some = b"" if told["ground_truth"] is None else b',"ground_truth":%b' % truth
        if split is not None:
            some += b',"split":%b' % dumps(split)
        offered = b"" if tools is None else b',"tools":%b' % dumps(tools, as_plain)
        pieces = (name, messages, some, columns, offered, self.position)
        self.whole = b'{"id":%b,"messages":%b%b,"columns":%b%b,"position":%d}' % pieces
        """All of the sample."""
        said = dumps(last_text(sample, "user")), dumps(last_text(sample, "system"))
        self.asked = b'"user_query":%b,"system_prompt":%b,"messages":%b' % (*said, messages[:-1])
        """A result's first columns. The list of messages is left open."""
        self.between = b"," if told["messages"] else b""
        """What stands between the turns of the sample and those of an answer."""
        self.truth = truth
        """The ground truth."""
        more = b',"columns":%b' % columns if told["columns"] else b""
        self.last = b'"split":%b%b}\n' % (dumps(split), more)
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
