"""What analysis reads of an experiment, and the names its columns have had.

The first name is the one that is written today. Files of earlier programs call the same things by the others.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["FIGURES", "TEXTS", "Field", "find_columns"]

Field = str
"""What a column is called inside."""

FIGURES: dict[Field, tuple[str, ...]] = {
    "query_id": ("query_id", "uuid", "task_id", "id"),
    "split": ("split",),
    "candidate_idx": ("candidate_idx", "response_index"),
    "is_verified": ("is_verified", "verification_is_verified", "overall_success"),
    "score": ("score", "verification_score", "evaluation_score"),
    "error": ("error",),
    "error_type": ("error_type",),
    "error_stage": ("error_stage",),
    "finish_reason": ("finish_reason",),
    "prompt_tokens": ("prompt_tokens",),
    "completion_tokens": ("completion_tokens",),
    "cost": ("cost",),
    "latency_ms": ("latency_ms",),
    "model": ("model",),
}
"""The columns that figures are made of: small, and read whole."""

TEXTS: dict[Field, tuple[str, ...]] = {
    "query": ("query", "question", "user_query", "task", "normalized_query", "messages", "input_messages"),
    "ground_truth": ("ground_truth", "ground_truth_for_eval", "ground_truth_answer", "success_condition"),
    "response": (
        "response", "assistant_response", "generated_command", "answer", "raw_model_output", "output_messages",
    ),
    "tool_calls": ("tool_calls",),
    "verifier": ("verifier", "verifier_name", "verification_verifier_name"),
    "verification_reason": (
        "verification_reason", "evaluation_reason", "verification_explanation", "verification_info",
    ),
}  # fmt: skip
"""The columns that may be long: read only for the rows that are shown or voted on."""


def find_columns(fields: dict[Field, tuple[str, ...]], present: Collection[str]) -> dict[Field, str]:
    """The column that holds each field, where there is one."""
    found = ((field, next((name for name in names if name in present), None)) for field, names in fields.items())
    return {field: name for field, name in found if name is not None}
