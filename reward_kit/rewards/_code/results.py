# SPDX-License-Identifier: Apache-2.0
"""What became of each test, in words that every code reward uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from reward_kit.models import ExecResult
from reward_kit.sandbox.isolated_python import CallOutcome

__all__ = ["CaseResult", "Status", "of_call", "of_run", "shown"]

Status = Literal["passed", "wrong", "raised", "timed_out", "memory", "died"]
"""`wrong`: it answered, and the answer is another. `died`: it ended, or was ended, before it answered."""

_SHOWN = 300


@dataclass(frozen=True)
class CaseResult:
    """What became of one test."""

    status: Status
    detail: str = ""
    """What it printed, returned or raised. Written by the code under test: to be shown, not trusted."""

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.status == "passed"


def shown(value: Any) -> str:
    """A value, or a text, short enough for a report."""
    text = value if isinstance(value, str) else _written(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _written(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an integer of more digits than Python writes, or a list deep in lists
        return "a value too large to be shown"


def of_call(outcome: CallOutcome, right: bool) -> CaseResult:
    """The result of a call, whose value is `right` or not."""
    if outcome.ok:
        return CaseResult("passed" if right else "wrong", f"returned {shown(outcome.value)}")
    if outcome.kind == "timed_out":
        return CaseResult("timed_out", "ran out of time")
    if outcome.oom_killed:
        return CaseResult("memory", "ran out of memory")
    return CaseResult("raised" if outcome.kind == "raised" else "died", shown(outcome.error))


def of_run(result: ExecResult, right: bool) -> CaseResult:
    """The result of a program, whose output is `right` or not; it must also end as programs that succeed do."""
    if result.timed_out:
        return CaseResult("timed_out", "ran out of time")
    if result.oom_killed:
        return CaseResult("memory", "ran out of memory")
    if result.signal is not None:
        return CaseResult("died", f"was ended by signal {result.signal}")
    if result.exit_code != 0:
        return CaseResult("raised", f"exited with {result.exit_code}: {shown(result.stderr.strip()[-_SHOWN:])}")
    if result.truncated:
        return CaseResult("wrong", "printed more than can be looked at")
    return CaseResult("passed" if right else "wrong", f"printed {shown(result.stdout.strip())!r}")
