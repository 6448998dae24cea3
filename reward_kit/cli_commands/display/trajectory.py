# SPDX-License-Identifier: Apache-2.0
"""An episode as lines of text: each step with what was shown, said and called, and what it was worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from reward_kit.models import Message, Rollout, Step

__all__ = ["Judged", "episode_json", "episode_lines", "overview_line"]


class Judged(NamedTuple):
    """What the reward said of an episode."""

    score: float | None
    reason: str | None
    error: str | None
    """Why there is no score."""
    steps: Mapping[int, float]
    """What it said of single steps, where it did."""


def overview_line(rollout: Rollout, judged: Judged | None) -> str:
    """The episode in one line."""
    steps = rollout.steps or []
    errors = sum(use.error is not None for step in steps for use in step.calls)
    parts = [f"{rollout.sample.id} · episode {rollout.response_index}", f"{len(steps)} steps", _end(rollout)]
    if judged is not None:
        parts.append("not judged" if judged.score is None else f"score {judged.score:g}")
    if errors:
        parts.append(f"{errors} tool errors")
    if rollout.branch is not None:
        parts.append(f"branch of {rollout.branch.response_index} at step {rollout.branch.step}")
    return " · ".join(parts)


def episode_lines(rollout: Rollout, judged: Judged | None, most: int) -> Iterator[str]:
    """The episode, step by step; of each message, so many characters."""
    yield overview_line(rollout, judged)
    for message in rollout.sample.messages:
        yield from _message(message, most)
    steps = {step.turn: (number, step) for number, step in enumerate(rollout.steps or ())}
    for place, message in enumerate(rollout.turns):
        if place in steps:
            number, step = steps[place]
            yield ""
            yield _heading(number, step, None if judged is None else judged.steps.get(number))
        yield from _message(message, most)
    yield ""
    if rollout.failure is not None:
        yield f"failed: {rollout.failure.type}: {rollout.failure.message}"
    if rollout.facts:
        yield f"facts: {_cut(orjson.dumps(rollout.facts).decode(), most)}"
    if judged is not None and judged.score is not None:
        yield f"score: {judged.score:g}{f' · {_cut(judged.reason, most)}' if judged.reason else ''}"
    elif judged is not None and rollout.failure is None:
        yield f"not judged: {_cut(judged.error or '', most)}"


def episode_json(rollout: Rollout, judged: Judged | None) -> Iterator[str]:
    """One line per step: the step, the assistant's turn, what came back, and the score of the whole episode."""
    steps = rollout.steps or []
    for number, step in enumerate(steps):
        end = steps[number + 1].turn if number + 1 < len(steps) else len(rollout.turns)
        turns = [turn.model_dump(exclude_none=True) for turn in rollout.turns[step.turn : end]]
        fields: dict[str, Any] = {"id": rollout.sample.id, "response_index": rollout.response_index, "step": number}
        if judged is not None:
            fields |= {"score": judged.score, "step_score": judged.steps.get(number)}
        yield orjson.dumps({**fields, **step.model_dump(exclude_none=True), "messages": turns}).decode()


def _heading(number: int, step: Step, judged: float | None) -> str:
    facts = [f"── step {number}"]
    if step.reward is not None:
        facts.append(f"reward {step.reward:g}")
    if judged is not None:
        facts.append(f"judged {judged:g}")
    if step.usage is not None:
        facts.append(f"{step.usage.completion_tokens} tokens")
    facts += [f"{use.name}: {use.error}" for use in step.calls if use.error is not None]
    return " · ".join(facts)


def _message(message: Message, most: int) -> Iterator[str]:
    if message.reasoning_content:
        yield f"  thinks     {_cut(message.reasoning_content, most)}"
    if message.text or not message.tool_calls:
        yield f"  {message.role:<10} {_cut(message.text, most)}"
    for call in message.tool_calls or ():
        yield f"  calls      {call.function.name}({_cut(call.function.arguments, most)})"


def _cut(text: str, most: int) -> str:
    """One line of it; of a longer text the beginning and the end."""
    shown = " ⏎ ".join(text.strip().splitlines())
    return shown if len(shown) <= most else f"{shown[: most // 2]} … {shown[-most // 2 :]}"


def _end(rollout: Rollout) -> str:
    if rollout.failure is not None:
        return "failed"
    return f"ended: {rollout.ended}{' (cut off)' if rollout.truncated else ''}"
