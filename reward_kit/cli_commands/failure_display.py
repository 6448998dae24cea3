"""What a person is told of failures: how many of each kind, and what one of them said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit.cli_commands.output import echo

__all__ = ["failure_lines", "tell_that_nothing"]

_LONGEST = 300
"""Characters of a message that are shown; the whole one is in the file of results."""


def failure_lines(summary: Mapping[str, Any]) -> list[str]:
    """A line for each kind of failure, the most frequent first."""
    examples: Mapping[str, str] = summary.get("failure_examples") or {}
    kinds: Mapping[str, int] = summary.get("failures_by_kind") or {}
    return [f"{count:,} × {kind}, such as: {_short(examples.get(kind, ''))}" for kind, count in kinds.items()]


def tell_that_nothing(was_done: str, summary: Mapping[str, Any]) -> None:
    """Say, also to those who asked for quiet, that nothing at all `was_done`, and why."""
    first = next(iter((summary.get("failure_examples") or {}).values()), None)
    if first is None:
        why = "there was nothing to do. Check the dataset and the limits on how much of it is taken."
    else:
        again = "Mend that, then run the same command again; add --retry-failed if it says that nothing is owed."
        why = f"the first failure was: {_short(first)} {again}"
    echo(f"Error: Nothing could be {was_done}: {why}", err=True)


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
