# SPDX-License-Identifier: Apache-2.0
"""A judged answer as it stands in a file, in whichever vocabulary, read into words that mean the same everywhere.

a line of results.jsonl (run, best-of-n, shell), or a row of a table ─▶ JudgedLine ─▶ cells of the table, sample's page
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_kit.analysis.texts import spoken
from reward_kit.answers.reasoning import split_reasoning
from reward_kit.storage.shell_tables import extra_columns
from reward_kit.storage.vocabularies import RUN, SHELL, TEXTS, find_columns
from reward_kit.utils import exact_json

__all__ = ["JudgedLine", "as_text", "excerpt", "read_line", "step_places", "texts_of"]

_DATASET = "columns"


@dataclass(slots=True)
class JudgedLine:
    """What a line says, in our own words. Nothing here is computed: figures come from `analysis`."""

    line: Mapping[str, Any] = field(repr=False)
    """As it stands in the file."""
    query: str = ""
    response: str = ""
    ground_truth: Any = None
    reason: str = ""
    reasoning: str | None = None
    error: str | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The dataset's own columns."""
    prompt: Sequence[Mapping[str, Any]] = ()
    turns: Sequence[Mapping[str, Any]] = ()
    """What the model said, and what it was answered, after the prompt."""
    tools: Sequence[Any] = ()
    tool_calls: Sequence[Any] = ()
    length: int = 0
    """Characters of the answer, also where it was cut."""


def read_line(line: Mapping[str, Any]) -> JudgedLine:
    """The line's fields, by the vocabularies' one table of names."""
    names = find_columns(TEXTS, [name for name, value in line.items() if value is not None])

    def held(name: str) -> Any:
        return line.get(names[name]) if name in names else None

    entry = JudgedLine(
        line,
        query=spoken(held("query")),
        ground_truth=held("ground_truth"),
        reason=as_text(held("verification_reason")),
        error=None if line.get("error") is None else as_text(line["error"]),
        metrics=_mapping(line.get(RUN.metrics)),
        columns=_dataset_columns(line),
        tools=_list(line.get("tools")),
        tool_calls=_list(line.get("tool_calls")),
    )
    _read_conversation(entry, held("response"))
    if line.get("reasoning"):
        entry.reasoning = as_text(line["reasoning"])
    return entry


def _read_conversation(entry: JudgedLine, answer: Any) -> None:
    messages = [turn for turn in _list(entry.line.get("messages")) if isinstance(turn, Mapping)]
    ends_with_answer = bool(messages) and RUN.query in entry.line  # a run's line holds the answer among its messages
    if ends_with_answer:
        places = step_places(messages, _list(entry.line.get("steps")))
        last = max((place for place, turn in enumerate(messages) if turn.get("role") == "user"), default=-1)
        last = last if places is None else places[0] - 1
        first = next((p for p in range(last + 1, len(messages)) if messages[p].get("role") == "assistant"), None)
        if first is not None:
            entry.prompt, entry.turns = messages[:first], messages[first:]
        else:
            entry.prompt = messages
    elif messages:
        entry.prompt = messages
    else:
        entry.prompt = [{"role": "user", "content": entry.query}]
    entry.response = spoken(answer) if not isinstance(answer, str) else answer
    final = entry.turns[-1] if entry.turns else {}
    if final.get("reasoning_content"):
        entry.reasoning = as_text(final["reasoning_content"])
    elif entry.reasoning is None and entry.response:
        thought, rest = split_reasoning(entry.response)
        if thought.strip() and rest != entry.response:
            entry.reasoning, entry.response = thought.strip(), rest.lstrip("\n")
    if final.get("tool_calls"):
        entry.tool_calls = _list(final["tool_calls"])
    entry.length = len(entry.response)


def step_places(messages: Sequence[Mapping[str, Any]], steps: Sequence[Any]) -> list[int] | None:
    """Where the turns of an episode's steps stand among all messages; None where there are none, or nobody knows.

    A step says where its turn stands among the episode's, and the last one is the model's last turn.
    """
    turns = [step["turn"] for step in steps if isinstance(step, Mapping) and isinstance(step.get("turn"), int)]
    last = max((place for place, turn in enumerate(messages) if turn.get("role") == "assistant"), default=None)
    if not turns or last is None or len(turns) < len(steps):
        return None
    places: list[int] = [last - turns[-1] + turn for turn in turns]
    fits = all(0 <= place < len(messages) and messages[place].get("role") == "assistant" for place in places)
    return places if fits else None


def _dataset_columns(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if SHELL.is_verified in line:
        return {name: value for name, value in extra_columns(line).items() if name != "check"}
    return _mapping(line.get(_DATASET))


def _mapping(held: Any) -> Mapping[str, Any]:
    parsed = _parsed(held)
    return parsed if isinstance(parsed, Mapping) else {}


def _list(held: Any) -> Sequence[Any]:
    parsed = _parsed(held)
    return parsed if isinstance(parsed, list) else []


def _parsed(held: Any) -> Any:
    """A value, or what its text holds where it is JSON."""
    if isinstance(held, str) and held[:1] in ("{", "["):
        try:
            return exact_json.loads(held)
        except exact_json.JSONDecodeError:
            return held
    return held


def texts_of(entry: JudgedLine) -> dict[str, str]:
    """The long texts of a record."""
    return {
        "query": entry.query,
        "response": entry.response,
        "reasoning": entry.reasoning or "",
        "ground_truth": as_text(entry.ground_truth),
        "reason": entry.reason or entry.error or "",
    }


def as_text(value: Any) -> str:
    """A value as text: a text as it is, nothing as nothing, everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return exact_json.dumps(value, str, non_str_keys=True).decode("utf-8", "replace")


def excerpt(text: str, width: int) -> str:
    """The beginning of a text in one line."""
    shown = " ".join(text[: 4 * width].split())
    return shown if len(shown) <= width and len(text) <= 4 * width else shown[: width - 1].rstrip() + "…"
