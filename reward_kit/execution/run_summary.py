# SPDX-License-Identifier: Apache-2.0
"""What `summary.json` of a run holds, as types."""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["EntryFigures", "EstimateFigures", "RunSummary"]


class EstimateFigures(TypedDict):
    """An estimate with its 95 % interval."""

    value: float
    low: float | None
    """None, or minus infinity, where one sample is all there is."""
    high: float | None
    samples: int
    """How many samples it rests on."""


class EntryFigures(TypedDict, total=False):
    """What was done since the run was entered the last time."""

    seconds: float
    generated: int
    cached: int
    judged: int
    failed: int
    invalid: int
    """Results that said `is_score_valid=False` and named no error."""
    completion_tokens: int
    tokens_per_second: float | None
    cost: float
    sandbox: str | None
    judge: dict[str, Any]


class RunSummary(TypedDict, total=False):
    """The figures of a run.

    A run that only generated has no scores; one that was interrupted has only what is known without reading its files.
    """

    phase: str
    model: str | None
    n: int
    samples: int
    records: int
    """Answers, judged or failed."""
    rollouts: int
    """Answers of a run that only generated."""
    judged: int
    failed: int
    failures_by_kind: dict[str, int]
    failure_examples: dict[str, str]
    """What the first failure of each kind said."""
    failure_tracebacks: dict[str, str]
    """Where the first of each kind was raised, where a reward raised."""
    truncated: int
    mean_score: EstimateFigures | None
    passed: int
    pass_rate: float | None
    pass_threshold: float
    pass_at_k: dict[str, EstimateFigures]
    metrics: dict[str, EstimateFigures]
    splits: dict[str, RunSummary]
    agent: dict[str, Any]
    """Of an agent's episodes: how they ended, and their turns, tool calls, tool errors and rewards by step."""
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    skipped_rows: int
    not_asked_for: int
    this_entry: EntryFigures
    inference: dict[str, Any]
    """Of `reward-kit shell`: the figures of its first phase."""
