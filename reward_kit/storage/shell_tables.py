# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of `reward-kit shell`: rollouts as lines of `commands.jsonl`, records as lines of `results.jsonl`.

sample.id → task_id · the command in the answer → generated_command · score ≥ 1 → overall_success
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit.answers.command import extract_command
from reward_kit.models import Failure, Record, Rollout, StepOutput, Verdict
from reward_kit.storage.row_json import json_line
from reward_kit.storage.vocabularies import SHELL
from reward_kit.utils.checksums import sealed_line

__all__ = ["NO_COMMAND", "Command", "command_line", "command_row", "extra_columns", "shell_result_row"]

NO_COMMAND = "NoCommand"
"""The `error_type` of an answer that was given but holds no command: the model's failure, not the machinery's."""

_EXECUTED = (
    "command_output", "command_exit_code", "command_success", "command_timed_out", "test_exit_code", "test_passed",
    SHELL.is_verified, "trajectory", "start_time", "end_time", "failure",
)  # fmt: skip
"""What only an executed command has."""
_TAKEN = SHELL.columns()
"""A dataset column of one of these names is kept inside `columns`."""
_TASK = (SHELL.query, "setup_commands", SHELL.ground_truth)

COMMAND_STEP, CHECK_STEP = "command", "check"
"""What the steps of a shell verdict are called."""


class Command(Rollout):
    """A line of `commands.jsonl` as the rollout that is executed: its answer is the command."""

    no_command: str | None = None
    """Why there is none, where the model answered and its answer holds none."""


def command_row(rollout: Rollout) -> dict[str, Any]:
    """The columns of `commands.jsonl` for a generated rollout, with the command taken out of the answer."""
    command = extract_command(rollout.turns[-1].text) if rollout.turns else None
    failure = rollout.failure
    row = _command_columns(rollout, command)
    if failure is not None:
        row |= {"error": f"{failure.type}: {failure.message}", "error_type": failure.type}
    elif command is None:
        row |= {"error": f"No command was found in the answer: {_shown(rollout)}", "error_type": NO_COMMAND}
    return row | {"cost": rollout.cost} | _extras(rollout)


def command_line(row: dict[str, Any]) -> bytes:
    """Such columns as a line of `commands.jsonl`."""
    return sealed_line(json_line(row))


def shell_result_row(record: Record) -> dict[str, Any]:
    """The executed command as the columns of a line of `results.jsonl`."""
    rollout = record.rollout
    command = rollout.turns[-1].text if rollout.turns else ""
    row = _command_columns(rollout, command or None) | _verdict_columns(record.verdict) | _extras(rollout)
    if isinstance(rollout, Command) and rollout.no_command is not None and record.failure is None:
        row["error"] = rollout.no_command  # as commands.jsonl has it
    del row["response_index"]  # the head says it
    return row


def extra_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The dataset's own columns in a line of `commands.jsonl`."""
    nested = row.get("columns")
    kept = {name: value for name, value in row.items() if name not in _TAKEN}
    return kept | (nested if isinstance(nested, dict) else {})


def _command_columns(rollout: Rollout, command: str | None) -> dict[str, Any]:
    columns = rollout.sample.columns
    return {
        "task_id": rollout.sample.id,
        "response_index": rollout.response_index,
        **{name: columns.get(name) for name in _TASK},
        SHELL.response: command,
        SHELL.generated_at: rollout.generated_at,
        "model": rollout.model,
        "finish_reason": rollout.finish_reason,
        "usage": rollout.usage.model_dump(exclude_none=True) if rollout.usage is not None else None,
        "latency_ms": rollout.latency_ms,
        "cached": rollout.cached,
    }


def _extras(rollout: Rollout) -> dict[str, Any]:
    others = {name: value for name, value in rollout.sample.columns.items() if name not in _TASK}
    nested = {name: value for name, value in others.items() if name in _TAKEN}
    free = {name: value for name, value in others.items() if name not in _TAKEN}
    return free | {"columns": nested} if nested else free


def _verdict_columns(verdict: Verdict) -> dict[str, Any]:
    if isinstance(verdict, Failure):
        return {
            **dict.fromkeys(_EXECUTED),
            "trajectory": [],
            "error": f"{verdict.type}: {verdict.message}",
            "error_type": verdict.type,
            "failure": verdict.model_dump(),
        }
    steps = {step.step_index: step for step in verdict.step_outputs or []}
    command, check = _facts(steps.get(COMMAND_STEP)), _facts(steps.get(CHECK_STEP))
    ran = COMMAND_STEP in steps
    return {
        "command_output": command.get("output"),
        "command_exit_code": command.get("exit_code"),
        "command_success": ran and steps[COMMAND_STEP].base_reward == 1.0,
        "command_timed_out": bool(command.get("timed_out")),
        "test_exit_code": check.get("exit_code"),
        "test_passed": steps[CHECK_STEP].base_reward == 1.0 if CHECK_STEP in steps else False,
        SHELL.is_verified: verdict.score >= 1.0,
        "trajectory": [{"step": i, "kind": kind, **_facts(step)} for i, (kind, step) in enumerate(steps.items())],
        "start_time": command.get("started"),
        "end_time": check.get("ended"),
        **({} if ran else {"error": verdict.reason, "error_type": NO_COMMAND}),
    }  # fmt: skip


def _facts(step: StepOutput | None) -> dict[str, Any]:
    return step.metrics if step is not None else {}


def _shown(rollout: Rollout, limit: int = 160) -> str:
    text = " ".join(rollout.turns[-1].text.split()) if rollout.turns else ""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")
