"""Which columns a line of `results.jsonl` may have: what a checksum cannot say of lines of a time before checksums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reward_kit.errors import StorageError
from reward_kit.storage.journal_lines import Head
from reward_kit.utils.checksums import CHECK

__all__ = ["refuse_other_columns"]

_HEAD = frozenset({"schema", *Head._fields, CHECK})
_OF_THE_VERDICT = frozenset(
    {
        "evaluation_score",
        "evaluation_reason",
        "evaluation_metrics",
        "is_score_valid",
        "error",
        "failure",
        "step_outputs",
    }
)
_OF_THE_ANSWER = frozenset({"model", "usage", "finish_reason", "latency_ms", "cached", "generated_at"})
_OF_A_RUN = frozenset(
    {"user_query", "system_prompt", "messages", "assistant_response", "ground_truth_for_eval", "split", "columns"}
)
_OF_AN_EXPERIMENT = frozenset({"query", "tools", "ground_truth", "response", "reasoning", "tool_calls"})
_KNOWN = _HEAD | _OF_THE_VERDICT | _OF_THE_ANSWER | _OF_A_RUN | _OF_AN_EXPERIMENT


def _is_index(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_score(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _is_verdict(value: Any) -> bool:
    return value is None or type(value) is bool


_NEEDED: dict[str, Callable[[Any], bool]] = {
    "response_index": _is_index,
    "evaluation_score": _is_score,
    "is_score_valid": _is_verdict,
}
_NEEDED_OF_SHELL: dict[str, Callable[[Any], bool]] = {"response_index": _is_index, "overall_success": _is_verdict}


def refuse_other_columns(row: Mapping[str, Any], which: str) -> None:
    """Refuse a line that lacks a column that figures are made of, or has one that no result has; `which` names it.

    Among the columns of `reward-kit shell` stand those of the dataset, of any name.
    """
    is_shell = "overall_success" in row
    needed = _NEEDED_OF_SHELL if is_shell else _NEEDED
    wrong = [name for name, is_right in needed.items() if name not in row or not is_right(row[name])]
    other = [] if is_shell else sorted(row.keys() - _KNOWN)
    if wrong or other:
        what = f"has no {wrong[0]!r} that could be one" if wrong else f"has a column {other[0]!r}, which no result has"
        raise StorageError(f"{which} {what}. Name a results.jsonl of `reward-kit run`, or restore the file.")
