# SPDX-License-Identifier: Apache-2.0
"""An agent's episodes as tables: how long they were, what their tools did, how they ended, what each step was worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reward_kit.analysis.present.text_table import TextTable
from reward_kit.analysis.present.wording import count

__all__ = ["episode_tables"]

_NAMES = {
    "turns": "turns per episode",
    "tool_calls": "tool calls per episode",
    "tool_errors": "tool errors per episode",
    "step_rewards": "sum of step rewards",
}
_ENDS = {
    "done": "the world ended it",
    "answered": "the model answered without a call",
    "stopped": "a stop word or a stop tool",
    "max_turns": "limit of turns",
    "max_tool_calls": "limit of tool calls",
    "bad_calls": "too many wrong calls in a row",
    "max_tokens": "limit of tokens",
    "context": "the conversation no longer fitted the model",
    "timeout": "limit of time",
    "money": "limit of money",
    "failed": "failed",
}
_FEW_STEPS = 12


def episode_tables(episodes: Mapping[str, Any] | None, *, full: bool) -> list[TextTable]:
    """The tables of an agent's episodes; none where there is no agent."""
    if episodes is None:
        return []
    found = [(name, *_with_interval(episodes[key])) for key, name in _NAMES.items() if episodes.get(key) is not None]
    tables = [TextTable("Episodes", ("figure", "mean", "95 %"), tuple(found), _cut_off(episodes))]
    total = episodes["episodes"]
    ends = tuple((_ENDS.get(end, end), count(times), _share(times, total)) for end, times in episodes["ended"].items())
    tables.append(TextTable("How episodes ended", ("end", "episodes", "share"), ends))
    kinds = tuple((kind, count(times)) for kind, times in episodes["tool_errors_by_kind"].items())
    tables.append(TextTable("Tool calls that went wrong", ("kind", "calls"), kinds))
    if by_step := episodes.get("reward_by_step"):
        shown = by_step if full else by_step[:_FEW_STEPS]
        told = ((step, mean) for step, mean in enumerate(shown) if mean is not None)
        rows = tuple((str(step), *_with_interval(mean), str(mean["samples"])) for step, mean in told)
        more = f"{len(by_step) - len(shown)} more steps: --full shows them." if len(shown) < len(by_step) else ""
        tables.append(TextTable("Reward by step", ("step", "mean", "95 %", "samples"), rows, more))
    return [table for table in tables if table.rows]


def _cut_off(episodes: Mapping[str, Any]) -> str:
    cut = episodes["truncated"]
    return f"A limit cut off {count(cut)} of {count(episodes['episodes'])} episodes." if cut else ""


def _with_interval(mean: Mapping[str, Any]) -> tuple[str, str]:
    low, high = mean["low"], mean["high"]
    known = low is not None and high is not None and abs(low) != float("inf") and abs(high) != float("inf")
    return f"{mean['value']:.3g}", f"{low:.3g} to {high:.3g}" if known else "not known from one sample"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""
