# SPDX-License-Identifier: Apache-2.0
"""What `summary.json` of a run holds, as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypedDict

from reward_kit.storage.thresholds import thresholds_reported

__all__ = [
    "NO_PASSES",
    "EntryFigures",
    "EstimateFigures",
    "RunSummary",
    "beside_the_cost",
    "cost_in_words",
    "has_passes",
    "is_graded",
    "many_failed",
    "rests_on",
]

NO_PASSES: Final = "the scores are graded: set `reward.pass_threshold`"
"""What stands in the place of pass@k where `has_passes` says no."""
_ROUNDING = 1e-9
_FEW = 0.1
"""The share of answers that may fail before that is said first."""


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
    earlier: dict[str, Any]
    """Of the cached ones, those made before the run was entered: how many, and when the oldest and the newest were."""
    judged: int
    failed: int
    invalid: int
    """Results that said `is_score_valid=False` and named no error."""
    completion_tokens: int
    tokens_per_second: float | None
    cost: float
    cost_is_at_most: bool
    sandbox: str | None
    judge: dict[str, Any]
    """What the judge was asked, and what that cost."""


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
    cost_is_at_most: bool
    """Said where it is so: some replies did not tell what they used, and count with the most that it may have been."""
    judge_cost: float | None
    """What the judge cost in all entries, where there is one; it is not part of `cost`."""
    judge_cost_is_at_most: bool
    skipped_rows: int
    not_asked_for: int
    this_entry: EntryFigures
    inference: dict[str, Any]
    """Of `reward-kit shell`: the figures of its first phase."""


def beside_the_cost(figures: Mapping[str, Any]) -> dict[str, Any]:
    """What figures say of money beside the cost: whether it may have been less, and what a judge cost."""
    names = ("cost_is_at_most", "judge_cost", "judge_cost_is_at_most")
    return {name: figures[name] for name in names if name in figures}


def cost_in_words(figures: Mapping[str, Any], name: str = "cost") -> str:
    """A cost of the figures, and whether it may have been less.

    >>> cost_in_words({"cost": 0.25, "cost_is_at_most": True}), cost_in_words({"cost": None})
    ('at most 0.2500', 'not known')
    """
    cost = figures.get(name)
    if cost is None:
        return "not known"
    return f"at most {cost:.4f}" if figures.get(f"{name}_is_at_most") else f"{cost:.4f}"


def is_graded(summary: Mapping[str, Any]) -> bool:
    """Whether some score says more than that an answer passes or not."""
    mean, passing = summary.get("mean_score"), summary.get("pass_rate")
    return mean is not None and passing is not None and abs(mean["value"] - passing) > _ROUNDING


def many_failed(summary: Mapping[str, Any]) -> str | None:
    """What is said first of a run of whose answers more than a tenth failed; None of any other."""
    failed, records = summary.get("failed", 0), summary.get("records", summary.get("rollouts", 0))
    if failed <= _FEW * records:
        return None
    rest = "the figures are those of the other" if "judged" in summary else "there are"
    left = "there are no figures" if failed == records else f"{rest} {records - failed:,}"
    return f"{failed:,} of {records:,} answers failed: {left}."


def has_passes(summary: Mapping[str, Any]) -> bool:
    """Whether it is known which answers pass: scores of 0 and 1 say it, others only beside a threshold.

    A threshold of 1 is the default and nobody's choice. `JudgedAnswers.has_passes` is the same of a run that was read.
    """
    return not is_graded(summary) or thresholds_reported(summary).given


def rests_on(estimate: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """On how many samples a figure rests, where it does not rest on all of them."""
    rests, whole = estimate["samples"], figures.get("samples", estimate["samples"])
    return "" if rests == whole else f"of {rests:,} of {whole:,} samples"
