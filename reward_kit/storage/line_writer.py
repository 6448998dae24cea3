# SPDX-License-Identifier: Apache-2.0
"""Lines of the files of a run, put together from pieces: what the lines of a sample share is written once.

    samples.jsonl    the sample
    rollouts.jsonl   head │ "sample": its name                          │ the rollout's own fields
    results.jsonl    head │ "user_query": … "messages": [what was asked │ what was answered] … │ "split": …

Writing the sample anew for every line would be most of what a line costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orjson import dumps
from pydantic_core import PydanticSerializationError

from reward_kit.models import SCHEMA_VERSION, EvaluateResult, Record, Rollout, Sample, set_fields
from reward_kit.storage.journal_lines import Entry, Line
from reward_kit.storage.large_parts import short_columns, short_row
from reward_kit.storage.row_json import as_plain, forgiving_json
from reward_kit.storage.samples import Samples, is_large, sample_json, sample_name
from reward_kit.storage.tables import (
    answer_of,
    entry_of,
    episode_columns,
    head_of,
    last_text,
    metrics_of,
    result_row,
    sample_columns,
    status_of,
)
from reward_kit.storage.vocabularies import RUN

__all__ = ["LineWriter"]

_KEPT = 256
"""Samples whose pieces are kept, twice as many at most: mostly enough for what is on its way from one file
to the other. More would leave the processor's caches, and cost more than they save."""
_NOT_ITS_OWN = {"response_index", "cost", "sample"}
_ROLLOUT = b'%b%d%b%b","cost":%b,"sample":"%b",%b\n'
_JUDGED = (
    '%b%d%bok","cost":%b,%b%b%b],'
    f'"{RUN.response}":%b,"{RUN.ground_truth}":%b,"{RUN.score}":%b,"{RUN.verification_reason}":%b,"{RUN.metrics}":%b,'
    f'"{RUN.score_is_valid}":true,"error":null,"model":%b,"usage":%b,"finish_reason":%b,"latency_ms":%b,"cached":%b,%b'
).encode()
_PROMPT = f'%b"{RUN.query}":%b,"system_prompt":%b,"messages":%b'.encode()


class LineWriter:
    """Writes rollouts and records as lines, and keeps what the lines of the samples it saw last have in common."""

    def __init__(self, samples: Samples, row_of: Callable[[Record], dict[str, Any]] = result_row) -> None:
        """Name the samples in `samples`, and put them there. `row_of`: the columns of a result."""
        self._samples = samples
        self._row_of = row_of
        self._recent: dict[int, _SampleText] = {}  # by the sample's id(), which stays its own while it is kept here
        self._before: dict[int, _SampleText] = {}

    def rollout_line(self, rollout: Rollout, content: str) -> Line:
        """The rollout, whose sample's content has this digest, as a line of `rollouts.jsonl`."""
        try:
            text = self._text(rollout.sample, content)
            self._put(text)
            return _rollout_line(rollout, text)
        except TypeError:
            named = b'{"sample":"%b",%b' % (self._samples.keep(rollout.sample), _any_rollout(rollout)[1:])
            return Entry(head_of(rollout, content, rollout.failure), named).line()

    def result_line(self, record: Record, content: str) -> Line:
        """The record, whose sample's content has this digest, as a line of `results.jsonl`."""
        rollout, result = record.rollout, record.result
        ours = self._row_of is result_row
        if ours and result is not None and result.step_outputs is None and rollout.steps is None:
            try:
                text = self._text(rollout.sample, content)
                if text.is_large:
                    self._put(text)
                return _judged_line(rollout, text, result)
            except TypeError:
                pass
        row = self._row_of(record)
        if is_large(sample_json(rollout.sample)):
            row = short_row(row, rollout.sample, self._samples.keep(rollout.sample))
        return entry_of(record, content, row).line()

    def _put(self, text: _SampleText) -> None:
        """Have the sample on disk before its line."""
        if text.whole is not None:
            self._samples.put(text.name, text.whole, text.position)
            text.whole = None  # it may be large

    def _text(self, sample: Sample, content: str) -> _SampleText:
        key = id(sample)  # once: Python tells whoever watches which files are opened of each call of `id`, too
        text = self._recent.get(key) or self._before.get(key)
        if text is None:
            text = _SampleText(sample, content)
            if len(self._recent) >= _KEPT:
                self._before, self._recent = self._recent, {}
            self._recent[key] = text
        return text


class _SampleText:
    """A sample as its lines tell it: pieces of JSON, for whoever puts a line together."""

    __slots__ = (
        "between", "index_from", "index_to", "is_large", "last", "name", "position", "prompt", "sample", "truth",
        "whole",
    )  # fmt: skip

    def __init__(self, sample: Sample, content: str) -> None:
        """Of this sample, whose content has this digest.

        Where a piece cannot be written (integers beyond 64 bits, text that is not valid Unicode), a `TypeError`.
        """
        self.sample = sample
        fields = sample.__dict__  # read in half the time of the model's attributes
        self.position = fields["position"]
        name, messages = dumps(fields["id"]), dumps([set_fields(message) for message in fields["messages"]], as_plain)
        truth, columns = dumps(fields["ground_truth"], as_plain), dumps(fields["columns"], as_plain)
        split, tools = fields["split"], fields["tools"]
        self.index_from = b'{"schema":%d,"id":%b,"response_index":' % (SCHEMA_VERSION, name)
        """The head up to the response index."""
        self.index_to = b',"position":%d,"content":"%b","status":"' % (self.position, content.encode())
        """The head from there to the status."""
        some = b"" if fields["ground_truth"] is None else b',"ground_truth":%b' % truth
        if fields["ground_truth_text"] is not None:
            some += b',"ground_truth_text":%b' % dumps(fields["ground_truth_text"])
        if split is not None:
            some += b',"split":%b' % dumps(split)
        offered = b"" if tools is None else b',"tools":%b' % dumps(tools, as_plain)
        whole = b'{"id":%b,"messages":%b%b,"columns":%b%b}' % (name, messages, some, columns, offered)
        self.whole: bytes | None = whole
        """All of the sample; None once it is among the run's samples."""
        self.name = sample_name(whole)
        """What lines call it."""
        self.is_large = is_large(whole)
        """Whether results name it, and large parts of it by their digests."""
        query: Any = last_text(sample, "user")
        system: Any = last_text(sample, "system")
        if self.is_large:
            short = short_columns(sample_columns(sample))
            query, system, messages = short[RUN.query], short["system_prompt"], dumps(short["messages"], as_plain)
            truth, columns = dumps(short[RUN.ground_truth], as_plain), dumps(short.get("columns", {}), as_plain)
        named = b'"sample":"%b",' % self.name if self.is_large else b""
        self.prompt = _PROMPT % (named, dumps(query), dumps(system), messages[:-1])
        """A result's first columns. The list of messages is left open."""
        self.between = b"," if fields["messages"] else b""
        """What stands between the turns of the sample and those of an answer."""
        self.truth = truth
        """The ground truth."""
        more = b',"columns":%b' % columns if fields["columns"] else b""
        self.last = b'"split":%b%b}\n' % (dumps(split), more)
        """A result's last columns, and the end of its line."""


def _rollout_line(rollout: Rollout, text: _SampleText) -> Line:
    values = rollout.__dict__  # read in half the time of the model's attributes
    usage, failure, index = values["usage"], values["failure"], values["response_index"]
    fields: dict[str, Any] = {
        "turns": [set_fields(turn) for turn in values["turns"]],
        "model": values["model"],
        "sampling": values["sampling"],
        "finish_reason": values["finish_reason"],
        "usage": None if usage is None else set_fields(usage),
        "latency_ms": values["latency_ms"],
        "cached": values["cached"],
        "generated_at": values["generated_at"],
    }
    if failure is not None:
        fields["failure"] = failure
    if values["tokens"] is not None:
        fields["tokens"] = values["tokens"].model_dump(exclude_none=True)
    if values["steps"] is not None:
        fields |= episode_columns(rollout) | {"facts": values["facts"], "branch": values["branch"]}
    if None in fields.values():
        fields = {name: held for name, held in fields.items() if held is not None}
    own, status = dumps(fields, as_plain)[1:], status_of(failure).encode()
    pieces = (text.index_from, index, text.index_to, status, _number(values["cost"]), text.name, own)
    return text.position, index, _ROLLOUT % pieces


def _any_rollout(rollout: Rollout) -> bytes:
    """The rollout as JSON, whatever it holds."""
    try:
        return rollout.__pydantic_serializer__.to_json(rollout, exclude=_NOT_ITS_OWN, exclude_none=True)
    except PydanticSerializationError:  # text that is not valid Unicode
        return forgiving_json(rollout.model_dump(exclude=_NOT_ITS_OWN, exclude_none=True))


def _judged_line(rollout: Rollout, text: _SampleText, verdict: EvaluateResult) -> Line:
    """The columns of `result_row`, put together from pieces."""
    values, result = rollout.__dict__, verdict.__dict__
    index, turns, usage = values["response_index"], values["turns"], values["usage"]
    answered, answer = dumps([set_fields(turn) for turn in turns], as_plain)[1:-1], dumps(answer_of(turns))
    reason, metrics = dumps(result["reason"]), dumps(metrics_of(verdict)) if result["metrics"] else b"{}"
    line = _JUDGED % (
        text.index_from, index, text.index_to, _number(values["cost"]), text.prompt,
        text.between if turns else b"", answered, answer, text.truth, dumps(result["score"]), reason, metrics,
        dumps(values["model"]), b"null" if usage is None else dumps(set_fields(usage)), dumps(values["finish_reason"]),
        dumps(values["latency_ms"]), b"true" if values["cached"] else b"false", text.last,
    )  # fmt: skip
    return text.position, index, line


def _number(value: float | None) -> bytes:
    return b"null" if value is None else repr(float(value)).encode() if value else b"0.0"
