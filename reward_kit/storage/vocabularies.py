# SPDX-License-Identifier: Apache-2.0
"""What the front doors call the same things: the one place that knows how a line of results is spelled.

    inside           run                     best-of-n           shell                in a table of best-of-n
    query            user_query              query               task                 query
    ground_truth     ground_truth_for_eval   ground_truth        success_condition    ground_truth
    response         assistant_response      response            generated_command    response
    score            evaluation_score        evaluation_score    (1 or 0)             score
    is_verified      (score ≥ threshold)     (score ≥ threshold) overall_success      is_verified

Everything else (the head of a line, `model`, `usage`, `error` …) has the same name everywhere. Tables of other programs
and of earlier times have further names, which are listed here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple

from reward_kit.errors import StorageError
from reward_kit.storage.journal_lines import Head
from reward_kit.storage.thresholds import Thresholds
from reward_kit.utils.checksums import CHECK

__all__ = [
    "BEST_OF_N",
    "CONVERSATIONS",
    "FIGURES",
    "RUN",
    "SHELL",
    "TEXTS",
    "ColumnNames",
    "Field",
    "ReadVerdict",
    "find_columns",
    "plain_names",
    "refuse_other_columns",
    "verdict_of",
    "vocabulary_of",
]  # fmt: skip

_NOT_SAID = ""
"""The name of what a vocabulary has no column for: no line has a column of this name."""


class ColumnNames(NamedTuple):
    """What the lines of one front door's `results.jsonl` call things."""

    name: Literal["run", "best-of-n", "shell"]
    query: str
    ground_truth: str
    response: str
    own: tuple[str, ...]
    """Further columns of this vocabulary."""
    score: str = _NOT_SAID
    score_is_valid: str = _NOT_SAID
    verification_reason: str = _NOT_SAID
    metrics: str = _NOT_SAID
    is_verified: str = _NOT_SAID
    generated_at: str = _NOT_SAID
    holds_any_column: bool = False
    """Whether the dataset's own columns, of any name, stand among these."""

    def columns(self) -> frozenset[str]:
        """The columns that a line may have, beside those of its dataset."""
        named = {value for value in self if isinstance(value, str)} - {self.name, _NOT_SAID}
        return frozenset({*named, *self.own, *_IN_EVERY_LINE})


_HEAD = ("schema", *Head._fields)
_IN_EVERY_LINE = (
    *_HEAD, CHECK, "error", "failure", "model", "usage", "finish_reason", "latency_ms", "cached",
    "columns", "sample",
)  # fmt: skip

RUN = ColumnNames(
    name="run",
    query="user_query",
    ground_truth="ground_truth_for_eval",
    response="assistant_response",
    score="evaluation_score",
    score_is_valid="is_score_valid",
    verification_reason="evaluation_reason",
    metrics="evaluation_metrics",
    own=("system_prompt", "messages", "split", "step_outputs"),
)
BEST_OF_N = RUN._replace(
    name="best-of-n",
    query="query",
    ground_truth="ground_truth",
    response="response",
    generated_at="generated_at",
    own=("messages", "tools", "reasoning", "tool_calls", "split", "step_outputs"),
)
SHELL = ColumnNames(
    name="shell",
    query="task",
    ground_truth="success_condition",
    response="generated_command",
    is_verified="overall_success",
    generated_at="timestamp",
    own=(
        "task_id", "setup_commands", "error_type", "command_output", "command_exit_code", "command_success",
        "command_timed_out", "test_exit_code", "test_passed", "trajectory", "start_time", "end_time",
    ),
    holds_any_column=True,
)  # fmt: skip
_VOCABULARIES = (RUN, BEST_OF_N, SHELL)


def vocabulary_of(line: Mapping[str, Any]) -> ColumnNames:
    """The vocabulary of a line of results. Each has a column that no line of another one can have."""
    if SHELL.is_verified in line:
        return SHELL
    return RUN if RUN.query in line else BEST_OF_N


class ReadVerdict(NamedTuple):
    """What was said of an answer: None where there is no verdict."""

    score: float | None
    is_verified: bool | None


_NO_VERDICT = ReadVerdict(None, None)


def verdict_of(line: Mapping[str, Any], thresholds: Thresholds) -> ReadVerdict:
    """The verdict in a line of results. An answer that was not judged has none, and is neither right nor wrong.

    A row of a table says itself which score verifies, unless somebody chose another threshold.
    """
    words = vocabulary_of(line)
    if words.is_verified:
        succeeded = line[words.is_verified]
        return _NO_VERDICT if succeeded is None else ReadVerdict(float(succeeded), bool(succeeded))
    if "is_verified" in line:
        score: float | None = line.get("score")
        if score is None or not thresholds.given:
            return ReadVerdict(score, line["is_verified"])
        return ReadVerdict(score, score >= thresholds.of(line.get("split")))
    score = line.get(words.score)
    if score is None or line.get(words.score_is_valid) is False:
        return _NO_VERDICT
    return ReadVerdict(float(score), score >= thresholds.of(line.get("split")))


# ── lines without a checksum ─────────────────────────────────────────────────────────────────────────────────────────


def _is_index(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_score(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _is_truth(value: Any) -> bool:
    return value is None or type(value) is bool


def _needed(words: ColumnNames) -> dict[str, Callable[[Any], bool]]:
    """The columns that figures are made of."""
    checks = {words.score: _is_score, words.score_is_valid: _is_truth, words.is_verified: _is_truth}
    return {"response_index": _is_index, **{name: is_right for name, is_right in checks.items() if name}}


_NEEDED = {words.name: _needed(words) for words in _VOCABULARIES}
_KNOWN = RUN.columns() | BEST_OF_N.columns()


def refuse_other_columns(row: Mapping[str, Any], which: str) -> None:
    """Refuse a line that lacks a column that figures are made of, or has one that no result has; `which` names it.

    For lines that were written before there were checksums, which would say it.
    """
    words = vocabulary_of(row)
    needed = _NEEDED[words.name]
    wrong = [name for name, is_right in needed.items() if name not in row or not is_right(row[name])]
    other = [] if words.holds_any_column else sorted(row.keys() - _KNOWN)
    if wrong or other:
        what = f"has no {wrong[0]!r} that could be one" if wrong else f"has a column {other[0]!r}, which no result has"
        raise StorageError(f"{which} {what}. Name a results.jsonl of `reward-kit run`, or restore the file.")


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Field = str
"""What a column is called inside, and in the Parquet files that `best-of-n` writes."""


def _called(field: Field, *elsewhere: str) -> tuple[str, ...]:
    """The names of a column, the likeliest first: inside, in the vocabularies, then `elsewhere`."""
    ours = [str(value) for words in _VOCABULARIES if (value := words._asdict().get(field))]
    return tuple(dict.fromkeys((field, *ours, *elsewhere)))


FIGURES: dict[Field, tuple[str, ...]] = {
    "query_id": ("query_id", "uuid", "task_id", "id"),
    "split": ("split",),
    "candidate_idx": ("candidate_idx", "response_index"),
    "is_verified": _called("is_verified", "verification_is_verified"),
    "score": _called("score", "verification_score"),
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
"""The columns that figures are made of, and their names: small, and read whole."""

_IN_MESSAGES = {"query": ("messages", "input_messages"), "response": ("output_messages",)}
"""Where tables without a column of its own hold something: among the messages of a conversation."""
CONVERSATIONS = frozenset(name for names in _IN_MESSAGES.values() for name in names)

TEXTS: dict[Field, tuple[str, ...]] = {
    "query": _called("query", "question", "normalized_query", *_IN_MESSAGES["query"]),
    "ground_truth": _called("ground_truth", "ground_truth_answer"),
    "response": _called("response", "answer", "raw_model_output", *_IN_MESSAGES["response"]),
    "tool_calls": ("tool_calls",),
    "verifier": ("verifier", "verifier_name", "verification_verifier_name"),
    "verification_reason": _called("verification_reason", "verification_explanation", "verification_info"),
}
"""The columns that may be long, and their names: read only for the rows that are shown or voted on."""


def plain_names(field: Field) -> tuple[str, ...]:
    """The names of the columns that hold a field itself, and not a conversation that it is a part of."""
    names = FIGURES.get(field) or TEXTS.get(field) or (field,)
    return tuple(name for name in names if name not in _IN_MESSAGES.get(field, ()))


def find_columns(fields: Mapping[Field, tuple[str, ...]], present: Collection[str]) -> dict[Field, str]:
    """The column that holds each field, where there is one."""
    found = ((field, next((name for name in names if name in present), None)) for field, names in fields.items())
    return {field: name for field, name in found if name is not None}
