"""Rollouts and records as lines of a file: the vocabulary of `reward-kit run`.

Inside, one word per idea; outside, the columns that users and tools already know (`user_query`, `evaluation_score` …).
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from reward_kit.errors import StorageError
from reward_kit.models import EvaluateResult, Failure, Rollout, Sample
from reward_kit.storage.journal_lines import Entry, Head, Status, position_in

__all__ = [
    "entry_of", "json_line", "json_text", "last_text", "preview_pair", "result_entry", "rollout_entry",
    "rollout_from_line", "set_fields", "verdict_columns",
]  # fmt: skip

_IN_THE_HEAD = {"response_index", "cost"}


def rollout_entry(rollout: Rollout, content: str) -> Entry:
    """The rollout as a line of `rollouts.jsonl`."""
    try:
        body = rollout.__pydantic_serializer__.to_json(rollout, exclude=_IN_THE_HEAD, exclude_none=True)
    except PydanticSerializationError:  # text that is not valid Unicode
        body = _forgiving(rollout.model_dump(exclude=_IN_THE_HEAD, exclude_none=True))
    return Entry(_head(rollout, content, rollout.failure), body)


def rollout_from_line(line: bytes) -> Rollout:
    """The rollout a line of `rollouts.jsonl` holds. Where its sample stands is for the line's head to say."""
    try:
        rollout = Rollout.model_validate_json(line)
    except ValidationError as error:
        raise StorageError(
            f"{line[:60].decode(errors='replace')!r}… is not a rollout ({error.errors()[0]['msg']}). "
            "Name a rollouts.jsonl that `reward-kit run` wrote, or restore it."
        ) from error
    for message in rollout.messages:
        if "content" not in message.model_fields_set:  # left out because it was None, not because it was empty
            message.content = None
    position = position_in(line)
    if position is None or position == rollout.sample.position:
        return rollout
    return rollout.model_copy(update={"sample": rollout.sample.model_copy(update={"position": position})})


def result_entry(rollout: Rollout, content: str, verdict: EvaluateResult | Failure) -> Entry:
    """The judged rollout as a line of `results.jsonl`."""
    return entry_of(rollout, content, verdict, _result_row(rollout, verdict))


def entry_of(rollout: Rollout, content: str, verdict: EvaluateResult | Failure, row: dict[str, Any]) -> Entry:
    """A line of a results journal with the columns of `row`, in whatever vocabulary."""
    failure = None if isinstance(verdict, EvaluateResult) else verdict
    try:
        body = orjson.dumps(row, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # integers beyond 64 bits; text that is not valid Unicode
        body = _forgiving(row)
    return Entry(_head(rollout, content, failure), body)


def verdict_columns(verdict: EvaluateResult | Failure) -> dict[str, Any]:
    """What was said of a rollout, in the columns that figures are made of."""
    return _judged(verdict) if isinstance(verdict, EvaluateResult) else _failed(verdict)


def set_fields(value: BaseModel) -> dict[str, Any]:
    """The fields that hold something, without the cost of a full dump: nested models are left to the JSON writer."""
    return {name: held for name, held in value.__dict__.items() if held is not None}


def preview_pair(row: dict[str, Any]) -> dict[str, Any] | None:
    """A result row as a preview line, or None where there is no answer to preview."""
    if row.get("assistant_response") is None or (row.get("failure") or {}).get("stage") == "generate":
        return None
    pair = {"messages": row["messages"], "id": row["id"]}
    if row.get("ground_truth_for_eval") is not None:
        pair["ground_truth"] = row["ground_truth_for_eval"]
    return pair


def _head(rollout: Rollout, content: str, failure: Failure | None) -> Head:
    status: Status = "ok" if failure is None else "retry" if failure.retryable else "failed"
    sample = rollout.sample
    return Head(sample.id, rollout.response_index, sample.position, content, status, rollout.cost)


def _result_row(rollout: Rollout, verdict: EvaluateResult | Failure) -> dict[str, Any]:
    sample, turns = rollout.sample, rollout.turns
    row: dict[str, Any] = {
        "user_query": last_text(sample, "user"),
        "system_prompt": last_text(sample, "system"),
        "messages": [*map(set_fields, sample.messages), *map(set_fields, turns)],
        "assistant_response": turns[-1].text if turns and turns[-1].role == "assistant" else None,
        "ground_truth_for_eval": sample.ground_truth,
        **verdict_columns(verdict),
        "model": rollout.model,
        "usage": None if rollout.usage is None else set_fields(rollout.usage),
        "finish_reason": rollout.finish_reason,
        "latency_ms": rollout.latency_ms,
        "cached": rollout.cached,
        "split": sample.split,
    }
    if sample.columns:
        row["columns"] = sample.columns
    return row


def _judged(verdict: EvaluateResult) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "evaluation_score": verdict.score,
        "evaluation_reason": verdict.reason,
        "evaluation_metrics": {
            name: {"score": metric.score, "is_score_valid": metric.is_score_valid, "reason": metric.reason}
            for name, metric in verdict.metrics.items()
        },
        "is_score_valid": True,
        "error": None,
    }
    if verdict.step_outputs is not None:
        columns["step_outputs"] = verdict.step_outputs
    return columns


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        "evaluation_score": None,
        "evaluation_reason": None,
        "evaluation_metrics": {},
        "is_score_valid": False,
        "error": f"{failure.type}: {failure.message}",
        "failure": failure,
    }


def last_text(sample: Sample, role: str) -> str | None:
    """What the last turn of a role says in a sample's prompt; None where it has no such turn."""
    for message in reversed(sample.messages):
        if message.role == role:
            return message.text
    return None


def json_line(row: dict[str, Any]) -> bytes:
    """Any row as a line of JSON, whatever a dataset or a command put into it."""
    try:
        return orjson.dumps(row, default=_plain, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # integers beyond 64 bits; text that is not valid Unicode
        return _forgiving(row) + b"\n"


def json_text(value: Any) -> str:
    """Any plain value as JSON text."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # integers beyond 64 bits; text that is not valid Unicode
        return _forgiving_text(value)


def _forgiving(row: dict[str, Any]) -> bytes:
    """The same text as bytes; what is not valid Unicode becomes a question mark."""
    return _forgiving_text(row).encode("utf-8", "replace")


def _forgiving_text(value: Any) -> str:
    """JSON from the standard library, for what the fast writers refuse: slower, exact in numbers, lenient in text."""
    text = _stdlib_json(value)
    if "NaN" in text or "Infinity" in text:  # words the library writes bare, and nobody may read: null, as elsewhere
        return _stdlib_json(json.loads(text, parse_constant=lambda _: None))
    return text


def _stdlib_json(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: object) -> object:
    """What JSON writers do not know: models as their fields, anything else as its text."""
    return value.model_dump() if isinstance(value, BaseModel) else str(value)
