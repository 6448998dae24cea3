"""Rollouts and records as lines of a file: the vocabulary of `reward-kit run`.

Inside, one word per idea; outside, the columns that users and tools already know (`user_query`, `evaluation_score` …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from orjson import dumps
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from reward_kit.errors import StorageError
from reward_kit.models import EvaluateResult, Failure, Message, Rollout, Sample, Usage
from reward_kit.redaction import blot_bytes, is_clean
from reward_kit.storage.journal_lines import Entry, Head, Line, Status, position_in
from reward_kit.storage.row_json import as_plain, forgiving_json, plain_json
from reward_kit.storage.sample_text import SampleText, last_text, set_fields
from reward_kit.utils.checksums import check_line

__all__ = [
    "entry_of",
    "preview_pair",
    "result_line",
    "result_row",
    "rollout_from_line",
    "rollout_line",
    "verdict_columns",
]

_IN_THE_HEAD = {"response_index", "cost"}
_ROLLOUT = b'%b%d%b%b","cost":%b,"sample":%b,%b\n'
_JUDGED = (
    b'%b%d%bok","cost":%b,%b%b%b],"assistant_response":%b,"ground_truth_for_eval":%b,"evaluation_score":%b,'
    b'"evaluation_reason":%b,"evaluation_metrics":%b,"is_score_valid":true,"error":null,"model":%b,"usage":%b,'
    b'"finish_reason":%b,"latency_ms":%b,"cached":%b,%b'
)


def rollout_line(rollout: Rollout, text: SampleText) -> Line:
    """The rollout, whose sample's text is `text`, as a line of `rollouts.jsonl`."""
    try:
        return _rollout_line(rollout, text.of(rollout.sample))
    except TypeError:
        return Entry(_head(rollout, text.content, rollout.failure), _any_rollout(rollout)).line()


def _rollout_line(rollout: Rollout, text: SampleText) -> Line:
    told = rollout.__dict__  # read in half the time of the model's attributes
    usage, failure, index = told["usage"], told["failure"], told["response_index"]
    fields: dict[str, Any] = {
        "turns": [set_fields(turn) for turn in told["turns"]],
        "model": told["model"],
        "sampling": told["sampling"],
        "finish_reason": told["finish_reason"],
        "usage": None if usage is None else set_fields(usage),
        "latency_ms": told["latency_ms"],
        "cached": told["cached"],
        "generated_at": told["generated_at"],
    }
    if failure is not None:
        fields["failure"] = failure
    if None in fields.values():
        fields = {name: held for name, held in fields.items() if held is not None}
    own, status = blot_bytes(dumps(fields, as_plain)[1:]), _status(failure).encode()
    pieces = (text.index_from, index, text.index_to, status, _number(told["cost"]), text.whole, own)
    return text.position, index, _ROLLOUT % pieces


def _any_rollout(rollout: Rollout) -> bytes:
    """The rollout as JSON, whatever it holds."""
    try:
        return blot_bytes(rollout.__pydantic_serializer__.to_json(rollout, exclude=_IN_THE_HEAD, exclude_none=True))
    except PydanticSerializationError:  # text that is not valid Unicode
        return blot_bytes(forgiving_json(rollout.model_dump(exclude=_IN_THE_HEAD, exclude_none=True)))


def rollout_from_line(line: bytes) -> Rollout:
    """The rollout a line of `rollouts.jsonl` holds. Where its sample stands is for the line's head to say."""
    try:
        rollout = Rollout.model_validate_json(line)
    except ValidationError as error:
        raise StorageError(
            f"{line[:60].decode(errors='replace')!r}… is not a rollout ({error.errors()[0]['msg']}). "
            "Name a rollouts.jsonl that `reward-kit run` wrote, or restore it."
        ) from error
    _refuse_other_fields(line, rollout)
    for message in rollout.messages:
        if "content" not in message.model_fields_set:  # left out because it was None, not because it was empty
            message.content = None
    position = position_in(line)
    if position is None or position == rollout.sample.position:
        return rollout
    return rollout.model_copy(update={"sample": rollout.sample.model_copy(update={"position": position})})


def _refuse_other_fields(line: bytes, rollout: Rollout) -> None:
    """Refuse a line that lacks a field, or of a time before checksums has another: defaults would hide the damage."""
    lacking = {"turns", "sample"} - rollout.model_fields_set
    other = set() if check_line(line) else _unknown_fields(orjson.loads(line))
    if lacking or other:
        what = f"lacks {', '.join(sorted(lacking))}" if lacking else f"has unknown fields: {', '.join(sorted(other))}"
        raise StorageError(
            f"The rollout {rollout.response_index} of {rollout.sample.id!r} {what}. "
            "Name a rollouts.jsonl that `reward-kit run` wrote, or restore it."
        )


def _unknown_fields(row: dict[str, Any]) -> set[str]:
    turns = [turn for turn in (*row["sample"]["messages"], *row.get("turns", ())) if isinstance(turn, dict)]
    parts: list[tuple[Mapping[str, Any], set[str]]] = [
        (row, {*Rollout.model_fields, *Head._fields, "schema"}),
        (row["sample"], {*Sample.model_fields}),
        (row.get("usage") or {}, {*Usage.model_fields}),
        (row.get("failure") or {}, {*Failure.model_fields}),
        *((turn, {*Message.model_fields}) for turn in turns),
    ]
    return {name for part, known in parts for name in part if name not in known}


def result_line(rollout: Rollout, text: SampleText, verdict: EvaluateResult | Failure) -> Line:
    """The judged rollout, whose sample's text is `text`, as a line of `results.jsonl`."""
    if isinstance(verdict, EvaluateResult) and verdict.step_outputs is None:
        try:
            return _judged_line(rollout, text.of(rollout.sample), verdict)
        except TypeError:
            pass
    return entry_of(rollout, text.content, verdict, result_row(rollout, verdict)).line()


def _judged_line(rollout: Rollout, text: SampleText, verdict: EvaluateResult) -> Line:
    """The columns of `result_row`, put together from pieces."""
    told, said = rollout.__dict__, verdict.__dict__
    index, turns, usage = told["response_index"], told["turns"], told["usage"]
    own = [
        dumps([set_fields(turn) for turn in turns], as_plain)[1:-1], dumps(_answer(turns)),
        dumps(said["reason"]), dumps(_metrics(verdict)) if said["metrics"] else b"{}",
    ]  # fmt: skip
    if not is_clean(b"\n".join(own)):
        own = [blot_bytes(piece) for piece in own]
    answered, answer, reason, metrics = own
    line = _JUDGED % (
        text.index_from, index, text.index_to, _number(told["cost"]), text.asked,
        text.between if turns else b"", answered, answer, text.truth, dumps(said["score"]), reason, metrics,
        dumps(told["model"]), b"null" if usage is None else dumps(set_fields(usage)), dumps(told["finish_reason"]),
        dumps(told["latency_ms"]), b"true" if told["cached"] else b"false", text.last,
    )  # fmt: skip
    return text.position, index, line


def entry_of(rollout: Rollout, content: str, verdict: EvaluateResult | Failure, row: dict[str, Any]) -> Entry:
    """A line of a results journal with the columns of `row`, in whatever vocabulary."""
    failure = None if isinstance(verdict, EvaluateResult) else verdict
    try:
        body = plain_json(row)
    except TypeError:
        body = forgiving_json(row)
    return Entry(_head(rollout, content, failure), blot_bytes(body))


def verdict_columns(verdict: EvaluateResult | Failure) -> dict[str, Any]:
    """What was said of a rollout, in the columns that figures are made of."""
    return _judged(verdict) if isinstance(verdict, EvaluateResult) else _failed(verdict)


def preview_pair(row: dict[str, Any]) -> dict[str, Any] | None:
    """A result row as a preview line, or None where there is no answer to preview."""
    if row.get("assistant_response") is None or (row.get("failure") or {}).get("stage") == "generate":
        return None
    pair = {"messages": row["messages"], "id": row["id"]}
    if row.get("ground_truth_for_eval") is not None:
        pair["ground_truth"] = row["ground_truth_for_eval"]
    return pair


def _head(rollout: Rollout, content: str, failure: Failure | None) -> Head:
    sample = rollout.sample
    return Head(sample.id, rollout.response_index, sample.position, content, _status(failure), rollout.cost)


def _status(failure: Failure | None) -> Status:
    return "ok" if failure is None else "retry" if failure.retryable else "failed"


def _number(value: float | None) -> bytes:
    return b"null" if value is None else repr(float(value)).encode() if value else b"0.0"


def result_row(rollout: Rollout, verdict: EvaluateResult | Failure) -> dict[str, Any]:
    """The columns of a result as plain data."""
    sample = rollout.sample
    row: dict[str, Any] = {
        "user_query": last_text(sample, "user"),
        "system_prompt": last_text(sample, "system"),
        "messages": [*map(set_fields, sample.messages), *map(set_fields, rollout.turns)],
        "assistant_response": _answer(rollout.turns),
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


def _answer(turns: Sequence[Message]) -> str | None:
    return turns[-1].text if turns and turns[-1].role == "assistant" else None


def _judged(verdict: EvaluateResult) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "evaluation_score": verdict.score,
        "evaluation_reason": verdict.reason,
        "evaluation_metrics": _metrics(verdict),
        "is_score_valid": True,
        "error": None,
    }
    if verdict.step_outputs is not None:
        columns["step_outputs"] = verdict.step_outputs
    return columns


def _metrics(verdict: EvaluateResult) -> dict[str, dict[str, Any]]:
    return {
        name: {"score": metric.score, "is_score_valid": metric.is_score_valid, "reason": metric.reason}
        for name, metric in verdict.metrics.items()
    }


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        "evaluation_score": None,
        "evaluation_reason": None,
        "evaluation_metrics": {},
        "is_score_valid": False,
        "error": f"{failure.type}: {failure.message}",
        "failure": failure,
    }
