# SPDX-License-Identifier: Apache-2.0
"""The figures of a shell evaluation: each phase's own, and both together in `summary.json`.

Rates are over executed commands; what could not be executed is counted beside them, by kind. The n commands of one task
are not independent, so every interval is computed over tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.execution.run_summary import beside_the_cost
from reward_kit.execution.totals import Totals
from reward_kit.statistics import ClusteredMean, PassAtK
from reward_kit.storage.shell_tables import NO_COMMAND
from reward_kit.storage.vocabularies import SHELL
from reward_kit.utils import exact_json

__all__ = ["CommandCounts", "count_commands", "execution_figures", "whole_summary"]

_RATES = {
    "success_rate": SHELL.is_verified,
    "command_success_rate": "command_success",
    "test_pass_rate": "test_passed",
}
"""What each rate counts."""


class CommandCounts(NamedTuple):
    """What the lines of a commands file come to."""

    commands: int
    no_command: int
    """Answers that hold none."""
    setups: int
    """How many different setups there are."""
    model: str | None
    """The model that the first line names."""


def count_commands(path: Path) -> CommandCounts:
    """Count the lines of a commands file that this run wrote."""
    commands = no_command = 0
    setups: set[bytes] = set()
    model = None
    with path.open("rb") as file:
        for line in map(exact_json.loads, file):
            commands += line[SHELL.response] is not None
            no_command += line.get("error_type") == NO_COMMAND
            setups.add(hashlib.blake2b(exact_json.dumps(line["setup_commands"]), digest_size=12).digest())
            model = model or line["model"]
    return CommandCounts(commands, no_command, len(setups), model)


class _Executed:
    """Running figures of result lines."""

    def __init__(self) -> None:
        self.rates = {name: ClusteredMean() for name in _RATES}
        self.passes = PassAtK(1)
        self.totals = Totals()
        self.tasks = self.records = self.judged = self.succeeded = self.timed_out = self.no_command = 0
        self.generation_errors = 0

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Take account of all lines of one task."""
        judged = [row for row in rows if row["status"] == "ok"]
        succeeded = sum(bool(row[SHELL.is_verified]) for row in judged)
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
            self.totals.add(row)
            self.generation_errors += (row.get("failure") or {}).get("stage") == "generate"
            self.timed_out += bool(row.get("command_timed_out"))
            self.no_command += row.get("error_type") == NO_COMMAND


def execution_figures(rows: Iterable[dict[str, Any]], _: object = None) -> dict[str, Any]:
    """The figures of result lines that come in dataset order, the lines of a task together."""
    executed = _Executed()
    for _task, group in groupby(rows, key=lambda row: str(row["id"])):
        executed.add(list(group))
    failed = executed.records - executed.judged
    figures: dict[str, Any] = {
        "tasks": executed.tasks,
        "records": executed.records,
        "judged": executed.judged,
        "failed": failed,
        "infrastructure_errors": failed - executed.generation_errors,
        "generation_errors": executed.generation_errors,
        **executed.totals.failures(),
        "no_command": executed.no_command,
        "timed_out": executed.timed_out,
        "successful_samples": executed.succeeded,
        "failed_samples": executed.judged - executed.succeeded,
    }
    for name, mean in executed.rates.items():
        estimate = mean.estimate()
        figures[name] = None if estimate is None else estimate.value
        figures[f"{name}_interval"] = None if estimate is None else [estimate.low, estimate.high]
    figures["pass_at_k"] = {
        str(k): {"value": found.value, "low": found.low, "high": found.high, "samples": found.count}
        for k, found in executed.passes.estimates().items()
    }
    return figures | executed.totals.spending()


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
        **beside_the_cost(spent),
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
