# SPDX-License-Identifier: Apache-2.0
"""From a file with one row per answer to one with one row per prompt, which holds all its answers. Inherited names.

    {id: a, response_index: 0, …}
    {id: a, response_index: 1, …}   →   {request_id: a, response_ids: [0, 1], rollouts_messages: [[…], […]], …}

Both kinds of result files are read: those of `reward-kit run` (`id`, `response_index`), and those of the older package
(`request_id`, `response_id`). A run needs none of this: it calls a reward with `mode="batch"` with all answers itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.errors import DatasetError
from reward_kit.utils import exact_json

__all__ = ["create_batch_evaluation_dataset", "transform_n_variant_jsonl_to_batch_format"]

Row = dict[str, Any]

_CONVERSATIONS = ("full_conversation_history", "messages")
_TURNS = {"system_prompt": "system", "user_query": "user", "assistant_response": "assistant"}
"""Columns that hold one turn each, in the order of a conversation, and the role of that turn."""

_WHICH = ("id", "request_id", "response_id", "response_index")
_VERDICT = ("evaluation_score", "evaluation_reason", "evaluation_metrics", "is_score_valid", "error")
_GENERATION = ("model", "usage", "finish_reason", "latency_ms", "cached", "cost")
_AGENT = ("discovered_tools", "executed_tool_calls", "final_mcp_state_captured")
_BOOKKEEPING = ("schema", "position", "content", "status", "check")
_NOT_OF_THE_PROMPT = frozenset({
    *_CONVERSATIONS, "assistant_response", *_WHICH, *_VERDICT, *_GENERATION, *_AGENT, *_BOOKKEEPING
})  # fmt: skip
"""Columns of result files that tell of one answer, or of the file, even where all answers happen to agree."""


class _Answer(NamedTuple):
    response_id: Any
    messages: list[Any]
    columns: Row


def transform_n_variant_jsonl_to_batch_format(
    input_file_path: str | Path,
    output_file_path: str | Path | None = None,
    request_id_field: str = "request_id",
    response_id_field: str = "response_id",
    messages_field: str = "full_conversation_history",
    fallback_messages_fields: list[str] | None = None,
) -> list[Row]:
    """Bring the answers to each prompt together, and return one row per prompt.

    A row has `request_id`, `rollouts_messages`, `num_variants`, `response_ids`, and the columns on which all answers to
    the prompt agree. Prompts keep the order of the file; answers are in the order of their ids. An answer that failed
    (it has an `error`) is left out. An answer whose conversation, prompt or id is not told is a `DatasetError`.

    The conversation is in `messages_field`, or in the first of `fallback_messages_fields` that is a list of messages;
    without any, it is made of `system_prompt`, `user_query` and `assistant_response`. An `output_file_path` is written
    as JSON lines, too.
    """
    from reward_kit.common_utils import load_jsonl
    from reward_kit.storage.files import write_whole

    conversations = (messages_field, *(fallback_messages_fields or ()), *_CONVERSATIONS)
    given = {request_id_field, response_id_field, *conversations}
    prompts: dict[Any, list[_Answer]] = {}
    for number, row in enumerate(load_jsonl(input_file_path), start=1):
        if row.get("error"):
            continue
        prompt = _first(row, (request_id_field, "id"))
        which = _first(row, (response_id_field, "response_index"))
        messages = _conversation(row, conversations)
        if prompt is None or which is None or not messages:
            raise DatasetError(
                f"Row {number} of {str(input_file_path)!r} does not tell its prompt ({request_id_field!r} or 'id'), "
                f"its answer ({response_id_field!r} or 'response_index') or its messages. Give the results of a run, "
                "or name the right columns."
            )
        prompts.setdefault(prompt, []).append(_Answer(which, messages, _columns(row, given)))
    batches = [_batch(prompt, answers) for prompt, answers in prompts.items()]
    if output_file_path is not None:
        write_whole(Path(output_file_path), b"".join(exact_json.dumps(batch) + b"\n" for batch in batches))
    return batches


def create_batch_evaluation_dataset(
    n_variant_jsonl_path: str | Path, output_jsonl_path: str | Path, **transform_kwargs: Any
) -> str:
    """Do the same from file to file, and return the path of the new one.

    `transform_kwargs` are further arguments of `transform_n_variant_jsonl_to_batch_format`.
    """
    transform_n_variant_jsonl_to_batch_format(n_variant_jsonl_path, output_jsonl_path, **transform_kwargs)
    return str(output_jsonl_path)


def _first(row: Row, names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _conversation(row: Row, names: Sequence[str]) -> list[Any]:
    """The messages of an answer, with its last turn; empty where the row has no answer."""
    for name in names:
        if isinstance(row.get(name), list) and row[name]:
            return list(row[name])
    if not row.get("assistant_response"):
        return []
    return [{"role": role, "content": row[name]} for name, role in _TURNS.items() if row.get(name)]


def _columns(row: Row, given: set[str]) -> Row:
    """What a row tells of its prompt. Our own result files keep the dataset's further columns in `columns`."""
    told = {name: value for name, value in row.items() if name not in _NOT_OF_THE_PROMPT | given}
    nested = told.pop("columns") if isinstance(told.get("columns"), dict) else {}
    return {**nested, **told}


def _batch(prompt: Any, answers: list[_Answer]) -> Row:
    try:
        answers = sorted(answers, key=lambda answer: answer.response_id)
    except TypeError:  # numbers and texts, which have no order among them
        answers = sorted(answers, key=lambda answer: str(answer.response_id))
    first, *others = (answer.columns for answer in answers)
    missing = object()
    return {
        **{name: v for name, v in first.items() if all(other.get(name, missing) == v for other in others)},
        "request_id": prompt,
        "rollouts_messages": [answer.messages for answer in answers],
        "num_variants": len(answers),
        "response_ids": [answer.response_id for answer in answers],
    }
