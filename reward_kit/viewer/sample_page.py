# SPDX-License-Identifier: Apache-2.0
"""The page of one sample: what was asked, every answer with its verdict, and what stands before and after it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from reward_kit.analysis.judged_answers import NOT_JUDGED
from reward_kit.storage.files import find_line
from reward_kit.storage.judged import JudgedAnswer, as_text, step_places
from reward_kit.storage.large_parts import whole_row
from reward_kit.storage.run_directory import ROLLOUTS
from reward_kit.storage.samples import SAMPLES, Samples
from reward_kit.utils import exact_json
from reward_kit.viewer import wire
from reward_kit.viewer.judged_by import judged_by, reward_file, try_command
from reward_kit.viewer.opened import OpenedRun, Snapshot
from reward_kit.viewer.rows import Table
from reward_kit.viewer.spans import spans_of

__all__ = ["part_of", "record_page", "sample_page", "steps_of"]

_SCHEMA = len(b'{"schema":00,')
"""Bytes before a head's id."""


def sample_page(
    run: OpenedRun, snapshot: Snapshot, table: Table, name: str, reviews: Mapping[int, wire.Review]
) -> wire.SamplePage:
    """The page of the sample of this name, with its neighbours in the table's order."""
    answers = snapshot.held()
    sample = snapshot.sample_of(name)
    rows = np.arange(answers.starts[sample], answers.starts[sample + 1])
    entries = snapshot.read_whole(rows)
    split, _ = answers.query_name(sample)
    first = entries[0]
    shared = _answers_of_requests(entries, _tokens(snapshot, rows))
    return wire.SamplePage(
        version=snapshot.version,
        id=name,
        split=split if answers.has_splits else "",
        prompt=[part_of(turn) for turn in first.asked],
        tools=[tool for tool in first.tools if isinstance(tool, dict)],
        ground_truth=None if first.ground_truth is None else as_text(first.ground_truth),
        columns=dict(first.columns),
        candidates=[
            _candidate(run, snapshot, int(row), one, reviews, count)
            for row, one, count in zip(rows, entries, shared, strict=True)
        ],
        neighbours=_neighbours(snapshot, table, sample),
    )  # fmt: skip


def record_page(snapshot: Snapshot, name: str, index: int) -> dict[str, Any]:
    """A record's lines as they stand in the files."""
    row = snapshot.row_of(name, index)
    (line,) = snapshot.whole([row])
    answers = snapshot.held()
    sample_id = answers.query_name(int(answers.query_of_row[row]))[1]
    rollout = None if snapshot.run.is_table else _rollout(snapshot.run.path, sample_id, index)
    return {"result": line, "rollout": rollout}


def _rollout(run: Path, sample_id: str, index: int) -> Any:
    """The line of a rollout with its sample, found by its head; None where there is none."""
    head = b'"id":%b,"response_index":%d,' % (orjson.dumps(sample_id), index)
    line = find_line(run / ROLLOUTS, head, _SCHEMA)
    try:
        with contextlib.closing(Samples(run / SAMPLES, read_only=True)) as samples:
            return None if line is None else whole_row(exact_json.loads(line), samples)
    except exact_json.JSONDecodeError:  # it is not whole yet
        return None


def _candidate(
    run: OpenedRun,
    snapshot: Snapshot,
    row: int,
    entry: JudgedAnswer,
    reviews: Mapping[int, wire.Review],
    shared: int | None,
) -> wire.Candidate:
    answers, index = snapshot.held(), int(snapshot.held().candidate[row])
    figures = {name: answers.figures[name][row].as_py() for name in answers.figures.column_names}
    verdict = int(answers.verdict[row])
    judged = verdict != NOT_JUDGED
    reward = judged_by(run.settings(), entry, figures.get("split"))
    failure = snapshot.held_columns.record["failure"][row].as_py()
    command, note = try_command(reward, entry, reward_file(reward, run.found.path, run.manifest()))
    return wire.Candidate(
        index=index,
        score=float(answers.scores[row]) if judged else None,
        passed=bool(verdict) if judged and answers.has_passes else None,
        valid=judged,
        failure=entry.error if not judged else None,
        failure_kind=failure,
        reason=entry.reason,
        metrics=_metrics(entry),
        response=_response(entry),
        spans=spans_of(entry, None if reward is None else reward.path, {} if reward is None else reward.params),
        steps=steps_of(entry),
        model=str(figures.get("model") or ""),
        finish_reason=figures.get("finish_reason"),
        latency_ms=figures.get("latency_ms"),
        tokens=None if figures.get("completion_tokens") is None else int(figures["completion_tokens"]),
        cost=figures.get("cost"),
        request_answers=shared,
        cached=bool(entry.row.get("cached")),
        review=reviews.get(index),
        command=command,
        command_note=note,
    )


def _tokens(snapshot: Snapshot, rows: NDArray[np.int64]) -> list[float | None]:
    figures = snapshot.held().figures
    if "completion_tokens" not in figures.column_names:
        return [None] * len(rows)
    held: list[float | None] = figures["completion_tokens"].take(rows).to_pylist()
    return held


def _answers_of_requests(entries: Sequence[JudgedAnswer], tokens: Sequence[float | None]) -> list[int | None]:
    """How many answers the request of each candidate gave: a request's tokens stand on its first answer alone.

    None where nobody knows: no tokens were noted, or there is an answer that never came, whose request may be another.
    """
    found: list[int | None] = [None] * len(entries)
    firsts = [place for place, count in enumerate(tokens) if count is not None]
    for first, after in pairwise([*firsts, len(entries)]):
        came = all(one.error is None or one.response or one.turns for one in entries[first:after])
        found[first:after] = [after - first if came else None] * (after - first)
    return found


def _metrics(entry: JudgedAnswer) -> list[wire.Metric]:
    found = []
    for name, metric in entry.metrics.items():
        if isinstance(metric, Mapping) and isinstance(metric.get("score"), int | float):
            valid = metric.get("is_score_valid") is not False
            reason = as_text(metric.get("reason"))
            found.append(wire.Metric(name=str(name), score=float(metric["score"]), valid=valid, reason=reason))
    return found


def _response(entry: JudgedAnswer) -> wire.Part:
    calls = [_call(call) for call in entry.tool_calls if isinstance(call, Mapping)]
    return wire.Part(
        role="assistant", text=entry.response, reasoning=entry.reasoning, name=None, tool_calls=calls
    )  # fmt: skip


def part_of(turn: Mapping[str, Any]) -> wire.Part:
    """A message as the page shows it."""
    calls = turn.get("tool_calls")
    return wire.Part(
        role=as_text(turn.get("role")),
        text=_content(turn.get("content")),
        reasoning=as_text(turn["reasoning_content"]) if turn.get("reasoning_content") else None,
        name=as_text(turn.get("name")) or None,
        tool_calls=[_call(call) for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else [],
    )


def _content(content: Any) -> str:
    """The text of a message; of one in parts, the texts of them, and what else is there as JSON."""
    if isinstance(content, list):
        texts = [
            part["text"] if isinstance(part, Mapping) and isinstance(part.get("text"), str) else as_text(part)
            for part in content
        ]
        return "\n".join(texts)
    return as_text(content)


def _call(call: Mapping[str, Any]) -> dict[str, str]:
    function = call.get("function")
    held: Mapping[str, Any] = function if isinstance(function, Mapping) else call
    return {
        "id": as_text(call.get("id")),
        "name": as_text(held.get("name")),
        "arguments": as_text(held.get("arguments")),
    }


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def steps_of(entry: JudgedAnswer) -> list[wire.Step]:
    """The steps of an episode, or of a shell task; none of a plain answer."""
    if isinstance(entry.row.get("trajectory"), list):
        return [_shell_step(number, step) for number, step in enumerate(entry.row["trajectory"])]
    steps = entry.row.get("steps")
    return _episode(entry, [step for step in steps if isinstance(step, Mapping)]) if isinstance(steps, list) else []


def _episode(entry: JudgedAnswer, steps: Sequence[Mapping[str, Any]]) -> list[wire.Step]:
    """Each step with its turn, and what it was answered. A step says where its turn stands among the episode's."""
    messages = [*entry.prompt, *entry.turns]
    places = step_places(messages, steps)
    worth = {as_text(one.get("step_index")): one for one in _outputs(entry)}
    found = []
    for number, step in enumerate(steps):
        place = places[number] if places else None
        after = places[number + 1] if places and number + 1 < len(places) else len(messages)
        answers = [] if place is None else messages[place + 1 : after]
        judged = worth.get(str(number), {})
        reward = judged.get("base_reward", step.get("reward"))
        calls = [call for call in step.get("calls") or [] if isinstance(call, Mapping)]
        seconds = [call["seconds"] for call in calls if isinstance(call.get("seconds"), int | float)]
        latency = step.get("latency_ms")
        waited = latency / 1_000 if isinstance(latency, int | float) else 0.0
        found.append(
            wire.Step(
                number=number,
                does=_nothing() if place is None else part_of(messages[place]),
                answers=[part_of(turn) for turn in answers],
                command=None,
                output=None,
                exit_code=None,
                seconds=waited + sum(seconds) if waited or seconds else None,
                reward=float(reward) if isinstance(reward, int | float) else None,
                error=", ".join(as_text(call["error"]) for call in calls if call.get("error")) or None,
            )
        )
    return found


def _outputs(entry: JudgedAnswer) -> list[Mapping[str, Any]]:
    held = entry.row.get("step_outputs")
    return [one for one in held if isinstance(one, Mapping)] if isinstance(held, list) else []


def _nothing() -> wire.Part:
    return wire.Part(role="assistant", text="", reasoning=None, name=None, tool_calls=[])


def _shell_step(number: int, step: Any) -> wire.Step:
    held: Mapping[str, Any] = step if isinstance(step, Mapping) else {}
    kind = as_text(held.get("kind")) or "command"
    return wire.Step(
        number=int(held.get("step", number)),
        does=wire.Part(role=kind, text=as_text(held.get("command")), reasoning=None, name=None, tool_calls=[]),
        answers=[],
        command=as_text(held.get("command")) or None,
        output=as_text(held.get("output")),
        exit_code=held.get("exit_code") if isinstance(held.get("exit_code"), int) else None,
        seconds=_seconds(held),
        reward=None,
        error="timed out" if held.get("timed_out") else None,
    )


def _seconds(held: Mapping[str, Any]) -> float | None:
    if isinstance(held.get("wall_seconds"), int | float):
        return float(held["wall_seconds"])
    try:
        return (datetime.fromisoformat(held["ended"]) - datetime.fromisoformat(held["started"])).total_seconds()
    except (KeyError, TypeError, ValueError):
        return None


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _neighbours(snapshot: Snapshot, table: Table, sample: int) -> wire.Neighbours:
    """The samples before and after it; those of a table of records in the order in which they first come."""
    answers = snapshot.held()
    order = table.order()
    if table.view.by == "record":
        samples = answers.query_of_row[order]
        _, firsts = np.unique(samples, return_index=True)
        order = samples[np.sort(firsts)]
    found = np.flatnonzero(order == sample)
    if not len(found):  # it was opened from elsewhere: it stands in no order
        return wire.Neighbours(
            position=0, total=len(order), previous=None, next=None, previous_failure=None, next_failure=None
        )
    place = int(found[0])
    good = answers.verified if answers.has_passes else answers.judged
    fails = (good < answers.sizes)[order]
    before, after = np.flatnonzero(fails[:place]), np.flatnonzero(fails[place + 1 :])

    def name(at: int | None) -> str | None:
        return None if at is None else as_text(snapshot.names[int(order[at])].as_py())

    return wire.Neighbours(
        position=place,
        total=len(order),
        previous=name(place - 1 if place else None),
        next=name(place + 1 if place + 1 < len(order) else None),
        previous_failure=name(int(before[-1]) if len(before) else None),
        next_failure=name(place + 1 + int(after[0]) if len(after) else None),
    )
