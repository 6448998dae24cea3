"""The figures of a shell evaluation: each phase's own, and both together in `summary.json`.

Rates are over executed commands; what could not be executed is counted beside them, by kind. The n commands of one task
are not independent, so every interval is computed over tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from reward_kit.execution.failures import FailureKinds
from reward_kit.statistics import ClusteredMean, PassAtK
from reward_kit.storage.shell_tables import NO_COMMAND

__all__ = ["execution_figures", "whole_summary"]

_RATES = {
    "success_rate": "overall_success",
    "command_success_rate": "command_success",
    "test_pass_rate": "test_passed",
}
"""What each rate counts."""


class _Totals:
    """Running sums over result lines."""

    def __init__(self) -> None:
        self.rates = {name: ClusteredMean() for name in _RATES}
        self.passes = PassAtK(1)
        self.failures = FailureKinds()
        self.tasks = self.records = self.judged = self.succeeded = self.timed_out = self.no_command = 0
        self.generation_errors = self.prompt_tokens = self.completion_tokens = 0
        self.cost, self.cost_known = 0.0, True

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Take account of all lines of one task."""
        judged = [row for row in rows if row["status"] == "ok"]
        succeeded = sum(bool(row["overall_success"]) for row in judged)
        self.tasks += 1
        self.records += len(rows)
        self.judged += len(judged)
        self.succeeded += succeeded
        for name, column in _RATES.items():
            self.rates[name].add([float(bool(row[column])) for row in judged])
        if judged:
            self.passes.add(len(judged), succeeded)
            self.passes.k_max = max(self.passes.k_max, len(judged))
        for row in rows:
            self._add_row(row)

    def _add_row(self, row: Mapping[str, Any]) -> None:
        failure = row.get("failure")
        if failure is not None:
            self.failures.add(failure)
            self.generation_errors += failure["stage"] == "generate"
        self.timed_out += bool(row.get("command_timed_out"))
        self.no_command += row.get("error_type") == NO_COMMAND
        usage = None if row.get("cached") else row.get("usage")
        if usage is not None:
            self.prompt_tokens += usage.get("prompt_tokens", 0)
            self.completion_tokens += usage.get("completion_tokens", 0)
        self.cost += row["cost"] or 0.0
        self.cost_known = self.cost_known and (row["cost"] is not None or usage is None)


def execution_figures(rows: Iterable[dict[str, Any]], _: object = None) -> dict[str, Any]:
    """The figures of result lines that come in dataset order, the lines of a task together."""
    totals = _Totals()
    for _task, group in groupby(rows, key=lambda row: str(row["id"])):
        totals.add(list(group))
    failed = totals.records - totals.judged
    figures: dict[str, Any] = {
        "tasks": totals.tasks,
        "records": totals.records,
        "judged": totals.judged,
        "failed": failed,
        "infrastructure_errors": failed - totals.generation_errors,
        "generation_errors": totals.generation_errors,
        **totals.failures.figures(),
        "no_command": totals.no_command,
        "timed_out": totals.timed_out,
        "successful_samples": totals.succeeded,
        "failed_samples": totals.judged - totals.succeeded,
    }
    for name, mean in totals.rates.items():
        estimate = mean.estimate()
        figures[name] = None if estimate is None else estimate.value
        figures[f"{name}_interval"] = None if estimate is None else [estimate.low, estimate.high]
    figures["pass_at_k"] = {
        str(k): {"value": found.value, "low": found.low, "high": found.high, "samples": found.count}
        for k, found in totals.passes.estimates().items()
    }
    return figures | {
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cost": totals.cost if totals.cost_known else None,
    }


def whole_summary(inference: Mapping[str, Any] | None, execution: Mapping[str, Any] | None) -> dict[str, Any]:
    """`summary.json`: what matters most on top, taken from the phases, which follow whole."""
    spent = inference or execution or {}
    judged = execution or {}
    counted = execution or inference or {}
    phases = {"inference": inference, "execution": execution}
    done = [name for name, figures in phases.items() if figures is not None]
    seconds = {f"{name}_seconds": figures["seconds"] for name, figures in phases.items() if figures is not None}
    return {
        "phase": "both" if len(done) > 1 else done[0],
        "model_name": spent.get("model"),
        "dataset_path": (inference or {}).get("dataset"),
        "total_samples": counted.get("records"),
        **{name: judged[name] for name in _SHOWN if name in judged},
        "failed": counted.get("failed", 0),
        "failures_by_kind": counted.get("failures_by_kind", {}),
        "failure_examples": counted.get("failure_examples", {}),
        **{name: spent.get(name) for name in ("prompt_tokens", "completion_tokens", "cost")},
        **seconds,
        "total_seconds": sum(seconds.values()),
        "start_time": min(figures["start_time"] for figures in phases.values() if figures is not None),
        "end_time": max(figures["end_time"] for figures in phases.values() if figures is not None),
        **{name: figures for name, figures in phases.items() if figures is not None},
    }


_SHOWN = (
    "records", "judged", "successful_samples", "failed_samples", "success_rate", "success_rate_interval",
    "command_success_rate", "command_success_rate_interval", "test_pass_rate", "test_pass_rate_interval",
    "infrastructure_errors", "no_command", "timed_out", "pass_at_k",
)  # fmt: skip
"""The figures of the execution that are told on top."""
