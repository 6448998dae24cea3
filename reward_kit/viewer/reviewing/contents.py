# SPDX-License-Identifier: Apache-2.0
"""Single records read back whole, as rollouts: what was asked, answered and compared with, and every column.

From the rollouts of a run directory where there are any, for they know all that was said; else from its results, or
from the columns of a Parquet file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reward_kit.errors import StorageError
from reward_kit.models import Message, Rollout, Sample
from reward_kit.storage.candidates import split_off_answer
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import RESULTS, ROLLOUTS
from reward_kit.storage.tables import rollout_from_line
from reward_kit.storage.vocabularies import find_columns, plain_names, vocabulary_of
from reward_kit.utils import exact_json
from reward_kit.viewer.reviewing.records import JudgedRecords

__all__ = ["read_group", "read_rollouts"]

Key = tuple[str, int]


def read_rollouts(records: JudgedRecords, keys: Sequence[Key]) -> dict[Key, Rollout]:
    """The rollouts of these records; one that is not there is left out."""
    directory = records.directory
    if directory is None:
        return dict(_from_parquet(records, keys))
    if (rollouts := directory / ROLLOUTS).exists():
        found = {key: rollout_from_line(line) for key, line in _lines(rollouts, keys)}
        if len(found) == len(set(keys)):
            return found
    return {key: _from_result(exact_json.loads(line)) for key, line in _lines(directory / RESULTS, keys)}


def read_group(records: JudgedRecords, key: Key) -> list[Rollout]:
    """All rollouts of the record's sample, in their order: some rewards judge them together."""
    (row,) = records.rows([key])
    if row is None:
        return []
    rows = records.answers.rows_of(int(records.answers.query_of_row[row]))
    keys = [(key[0], int(index)) for index in records.answers.candidate[rows]]
    found = read_rollouts(records, keys)
    return [found[one] for one in keys if one in found]


def _lines(path: Path, keys: Sequence[Key]) -> Iterator[tuple[Key, bytes]]:
    with Journal(path, read_only=True) as journal:
        index = journal.index()
        for key in dict.fromkeys(keys):
            if (offset := index.offset(*key)) is not None:
                yield key, journal.line_at(offset)


def _from_result(line: Mapping[str, Any]) -> Rollout:
    words = vocabulary_of(line)
    prompt, turns = _conversation(line, words.query, words.response)
    sample = _sample(line, str(line["id"]), prompt, line.get(words.ground_truth))
    return Rollout(sample=sample, response_index=line["response_index"], turns=turns, model=line.get("model"))


def _conversation(row: Mapping[str, Any], query: str, response: str) -> tuple[list[Message], list[Message]]:
    stored = row.get("messages")
    messages = exact_json.loads(stored) if isinstance(stored, str) else stored
    if messages is None:
        messages = [{"role": "user", "content": row.get(query) or ""}]
    prompt, turns = split_off_answer(messages)
    if not turns and (row.get(response) is not None or row.get("tool_calls")):
        calls = row.get("tool_calls")
        turn = {"role": "assistant", "content": row.get(response) or "", "reasoning_content": row.get("reasoning")}
        turns = [turn | {"tool_calls": exact_json.loads(calls) if isinstance(calls, str) else calls} if calls else turn]
    return [Message.model_validate(turn) for turn in prompt], [Message.model_validate(turn) for turn in turns]


def _sample(row: Mapping[str, Any], name: str, prompt: list[Message], truth: Any) -> Sample:
    columns, tools = row.get("columns"), row.get("tools")
    return Sample(
        id=name,
        messages=prompt,
        ground_truth=truth,
        split=row.get("split"),
        columns=(exact_json.loads(columns) if isinstance(columns, str) else columns) or {},
        tools=exact_json.loads(tools) if isinstance(tools, str) else tools,
    )


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_READ = ("split", "query", "messages", "tools", "ground_truth", "response", "reasoning", "tool_calls", "columns")


def _from_parquet(records: JudgedRecords, keys: Sequence[Key]) -> Iterator[tuple[Key, Rollout]]:
    wanted = [(key, row) for key, row in zip(keys, records.rows(keys), strict=True) if row is not None]
    places = records.answers.source_rows[np.array([row for _, row in wanted], dtype=np.int64)]
    for (key, _), held in zip(wanted, records.answers.texts.whole(places) if wanted else [], strict=True):
        names = find_columns({field: plain_names(field) for field in _READ}, held)
        yield key, _from_row(key, {field: held[name] for field, name in names.items()})


def _from_row(key: Key, row: Mapping[str, Any]) -> Rollout:
    try:
        prompt, turns = _conversation(row, "query", "response")
        return Rollout(sample=_sample(row, key[0], prompt, row.get("ground_truth")), response_index=key[1], turns=turns)
    except ValueError as error:
        raise StorageError(
            f"The answer {key[1]} of {key[0]!r} is not a conversation that can be read ({error}). Restore the file."
        ) from error
