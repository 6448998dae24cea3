# SPDX-License-Identifier: Apache-2.0
"""The columns of a run's files, and how a rollout is read back: the vocabulary of `reward-kit run`.

Inside, one word per idea; outside, the columns that users and tools already know (`user_query`, `evaluation_score` …).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from reward_kit.errors import StorageError
from reward_kit.models import (
    EvaluateResult,
    Failure,
    Message,
    Record,
    Rollout,
    Sample,
    Step,
    Usage,
    Verdict,
    set_fields,
)
from reward_kit.storage.journal_lines import HEAD, Entry, Head, Status, position_in
from reward_kit.storage.row_json import forgiving_json, plain_json
from reward_kit.storage.samples import Samples
from reward_kit.storage.vocabularies import RUN
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line

__all__ = [
    "answer_of",
    "entry_of",
    "episode_columns",
    "head_of",
    "last_text",
    "metrics_of",
    "preview_pair",
    "result_row",
    "rollout_from_line",
    "sample_columns",
    "status_of",
    "verdict_columns",
]


_NAMES_SAMPLE = re.compile(HEAD.pattern + rb'"sample":"([0-9a-f]{32})"')
"""A line of rollouts that names its sample. Before schema 3, the whole sample stood there."""


def rollout_from_line(line: bytes, samples: Samples) -> Rollout:
    """The rollout a line of `rollouts.jsonl` holds. Where its sample stands is for the line's head to say."""
    named = _NAMES_SAMPLE.match(line)
    try:
        if named is None:
            rollout = Rollout.model_validate_json(line)
        else:
            sample = samples.sample(named[8], int(named[4]))
            rollout = Rollout.model_validate({**exact_json.loads(line), "sample": sample})
    except (ValidationError, exact_json.JSONDecodeError) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise StorageError(
            f"{line[:60].decode(errors='replace')!r}… is not a rollout ({what}). "
            "Name a rollouts.jsonl that `reward-kit run` wrote, or restore it."
        ) from error
    _refuse_other_fields(line, rollout)
    for message in rollout.messages if named is None else rollout.turns:
        if "content" not in message.model_fields_set:  # left out because it was None, not because it was empty
            message.content = None
    position = position_in(line)
    if position is None or position == rollout.sample.position:
        return rollout
    return rollout.model_copy(update={"sample": rollout.sample.model_copy(update={"position": position})})


def _refuse_other_fields(line: bytes, rollout: Rollout) -> None:
    """Refuse a line that lacks a field, or of a time before checksums has another: defaults would hide the damage."""
    lacking = {"turns", "sample"} - rollout.model_fields_set
    other = set() if check_line(line) else _unknown_fields(exact_json.loads(line))
    if lacking or other:
        what = f"lacks {', '.join(sorted(lacking))}" if lacking else f"has unknown fields: {', '.join(sorted(other))}"
        raise StorageError(
            f"The rollout {rollout.response_index} of {rollout.sample.id!r} {what}. "
            "Name a rollouts.jsonl that `reward-kit run` wrote, or restore it."
        )


def _unknown_fields(row: dict[str, Any]) -> set[str]:
    sample = row["sample"] if isinstance(row["sample"], dict) else {"messages": ()}  # else it is named, and elsewhere
    turns = [turn for turn in (*sample["messages"], *row.get("turns", ())) if isinstance(turn, dict)]
    parts: list[tuple[Mapping[str, Any], set[str]]] = [
        (row, {*Rollout.model_fields, *Head._fields, "schema"}),
        (sample, {*Sample.model_fields}),
        (row.get("usage") or {}, {*Usage.model_fields}),
        (row.get("failure") or {}, {*Failure.model_fields}),
        *((step, {*Step.model_fields}) for step in row.get("steps") or ()),
        *((turn, {*Message.model_fields}) for turn in turns),
    ]
    return {name for part, known in parts for name in part if name not in known}


def entry_of(record: Record, content: str, row: dict[str, Any]) -> Entry:
    """A line of a results journal with the columns of `row`, in whatever vocabulary.

    `content` is the digest of the sample's content.
    """
    try:
        body = plain_json(row)
    except TypeError:
        body = forgiving_json(row)
    return Entry(head_of(record.rollout, content, record.failure), body)


def verdict_columns(verdict: Verdict) -> dict[str, Any]:
    """What was said of a rollout, in the columns that figures are made of."""
    return _judged(verdict) if isinstance(verdict, EvaluateResult) else _failed(verdict)


def preview_pair(row: dict[str, Any]) -> dict[str, Any] | None:
    """A result row as a preview line, or None where there is no answer to preview."""
    if row.get(RUN.response) is None or (row.get("failure") or {}).get("stage") == "generate":
        return None
    pair = {"messages": row["messages"], "id": row["id"]}
    if row.get(RUN.ground_truth) is not None:
        pair["ground_truth"] = row[RUN.ground_truth]
    return pair


def head_of(rollout: Rollout, content: str, failure: Failure | None) -> Head:
    """What opens a line about a rollout, which tells of this failure or of none."""
    sample = rollout.sample
    return Head(sample.id, rollout.response_index, sample.position, content, status_of(failure), rollout.cost)


def status_of(failure: Failure | None) -> Status:
    """The status of a line that tells of this failure, or of none."""
    return "ok" if failure is None else "retry" if failure.retryable else "failed"


def result_row(record: Record) -> dict[str, Any]:
    """The columns of a result as plain data."""
    rollout = record.rollout
    asked = sample_columns(rollout.sample)
    row: dict[str, Any] = {
        RUN.query: asked[RUN.query],
        "system_prompt": asked["system_prompt"],
        "messages": [*asked["messages"], *map(set_fields, rollout.turns)],
        RUN.response: answer_of(rollout.turns),
        RUN.ground_truth: asked[RUN.ground_truth],
        **verdict_columns(record.verdict),
        "model": rollout.model,
        "usage": None if rollout.usage is None else set_fields(rollout.usage),
        "finish_reason": rollout.finish_reason,
        "latency_ms": rollout.latency_ms,
        "cached": rollout.cached,
        "split": asked["split"],
    }
    if rollout.steps is not None:
        row |= episode_columns(rollout)
        if rollout.branch is not None:
            row["branch"] = rollout.branch
    return row | ({"columns": asked["columns"]} if "columns" in asked else {})


def sample_columns(sample: Sample) -> dict[str, Any]:
    """What a result tells of its sample; its `messages` are the first of the result's."""
    columns = {
        RUN.query: last_text(sample, "user"),
        "system_prompt": last_text(sample, "system"),
        "messages": [*map(set_fields, sample.messages)],
        RUN.ground_truth: sample.ground_truth,
        "split": sample.split,
    }
    return columns | {"columns": sample.columns} if sample.columns else columns


def episode_columns(rollout: Rollout) -> dict[str, Any]:
    """What only an agent's rollout has: its steps, and how it ended."""
    steps = [step.model_dump(exclude_none=True) for step in rollout.steps or ()]
    return {"steps": steps, "ended": rollout.ended, "truncated": rollout.truncated}


def last_text(sample: Sample, role: str) -> str | None:
    """What the last turn of a role says in a sample's prompt; None where it has no such turn."""
    for message in reversed(sample.messages):
        if message.role == role:
            return message.text
    return None


def answer_of(turns: Sequence[Message]) -> str | None:
    """The text of the answer; None where the last turn is none."""
    return turns[-1].text if turns and turns[-1].role == "assistant" else None


def _judged(verdict: EvaluateResult) -> dict[str, Any]:
    columns: dict[str, Any] = {
        RUN.score: verdict.score,
        RUN.verification_reason: verdict.reason,
        RUN.metrics: metrics_of(verdict),
        RUN.score_is_valid: True,
        "error": None,
    }
    if verdict.step_outputs is not None:
        columns["step_outputs"] = verdict.step_outputs
    return columns


def metrics_of(verdict: EvaluateResult) -> dict[str, dict[str, Any]]:
    """The metrics of a result as they are written into a line: score, validity and reason of each, by name."""
    return {
        name: {"score": metric.score, "is_score_valid": metric.is_score_valid, "reason": metric.reason}
        for name, metric in verdict.metrics.items()
    }


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        RUN.score: None,
        RUN.verification_reason: None,
        RUN.metrics: {},
        RUN.score_is_valid: False,
        "error": f"{failure.type}: {failure.message}",
        "failure": failure,
    }
