# SPDX-License-Identifier: Apache-2.0
"""The n answers of each prompt brought together: from result rows to rows that a batch reward takes.

The names are those of the older package. It reads its result files (`request_id`, `response_id`) and ours (`id`,
`response_index`). In a run nothing of this is needed: a reward with `mode="batch"` gets all answers to a sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from reward_kit.errors import DatasetError

__all__ = ["create_batch_evaluation_dataset", "transform_n_variant_jsonl_to_batch_format"]

Row = dict[str, Any]

_OF_ONE_ANSWER = frozenset({
    "id", "request_id", "response_id", "response_index", "messages", "full_conversation_history", "assistant_response",
    "evaluation_score", "evaluation_reason", "evaluation_metrics", "is_score_valid", "executed_tool_calls",
    "discovered_tools", "final_mcp_state_captured", "error", "schema", "position", "content", "status", "cost", "usage",
    "finish_reason", "latency_ms", "cached", "model", "check",
})  # fmt: skip
"""Columns that differ between the answers to one prompt, or are of the file."""


def transform_n_variant_jsonl_to_batch_format(
    input_file_path: str | Path,
    output_file_path: str | Path | None = None,
    request_id_field: str = "request_id",
    response_id_field: str = "response_id",
    messages_field: str = "full_conversation_history",
    fallback_messages_fields: list[str] | None = None,
) -> list[Row]:
    """One row for each prompt: `request_id`, `rollouts_messages`, `num_variants`, `response_ids`, other columns.

    Rows with an `error` are left out. A row that does not say which answer it is, or holds no conversation, is a
    `DatasetError`. With an `output_file_path` they are also written there, as JSON lines.
    """
    from reward_kit.common_utils import load_jsonl

    together: dict[str, list[tuple[Any, list[Any], Row]]] = {}
    for number, row in enumerate(load_jsonl(input_file_path), start=1):
        if row.get("error"):
            continue
        request = row.get(request_id_field, row.get("id"))
        response = row.get(response_id_field, row.get("response_index"))
        messages = _messages(row, messages_field)
        if request is None or response is None or not messages:
            raise DatasetError(
                f"Line {number} of {str(input_file_path)!r} lacks {request_id_field!r}, {response_id_field!r} or its "
                "messages. Give the results of a run with n answers."
            )
        together.setdefault(str(request), []).append((response, messages, row))
    batches = [_batch(request, answers, request_id_field) for request, answers in together.items()]
    if output_file_path is not None:
        lines = (orjson.dumps(batch, option=orjson.OPT_APPEND_NEWLINE) for batch in batches)
        Path(output_file_path).write_bytes(b"".join(lines))
    return batches


def create_batch_evaluation_dataset(
    n_variant_jsonl_path: str | Path, output_jsonl_path: str | Path, **transform_kwargs: Any
) -> str:
    """Write the rows of `transform_n_variant_jsonl_to_batch_format` to a file, and return its path."""
    transform_n_variant_jsonl_to_batch_format(n_variant_jsonl_path, output_jsonl_path, **transform_kwargs)
    return str(output_jsonl_path)


def _batch(request: str, answers: list[tuple[Any, list[Any], Row]], request_id_field: str) -> Row:
    ordered = sorted(answers, key=lambda answer: (str(type(answer[0])), answer[0]))
    first = ordered[0][2]
    return {
        "request_id": first.get(request_id_field, request),
        "rollouts_messages": [messages for _, messages, _ in ordered],
        "num_variants": len(ordered),
        "response_ids": [response for response, _, _ in ordered],
        **{name: value for name, value in first.items() if name not in _OF_ONE_ANSWER},
    }


def _messages(row: Row, field: str) -> list[Any]:
    """The whole conversation, as it is written down, or made of its parts."""
    for name in (field, "messages"):
        if isinstance(row.get(name), list) and row[name]:
            whole: list[Any] = row[name]
            return whole
    parts = (("system", "system_prompt"), ("user", "user_query"), ("assistant", "assistant_response"))
    return [{"role": role, "content": row[name]} for role, name in parts if row.get(name)]
