# SPDX-License-Identifier: Apache-2.0
"""A run's results as an agent leaves them: walks on a board, in a results.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reward_kit.models import EvaluateResult, Failure, Message, Record, Rollout, Sample, StepOutput
from reward_kit.storage.journal import Journal
from reward_kit.storage.tables import entry_of, result_row

PROMPT = [Message(role="system", content="Walk to G."), Message(role="user", content="You are at A.")]
SHOT = [Message(role="user", content="You are at F."), Message(role="assistant", content="left")]
"""An example before the prompt: an assistant's message that is no step."""


def walk(
    moves: str,
    boards: str,
    *,
    score: float | None,
    index: int = 0,
    rewards: Sequence[float | None] | None = None,
    outputs: Sequence[tuple[int | str, float]] | None = None,
    query: str = "lake",
    position: int = 0,
    **columns: Any,
) -> tuple[Record, dict[str, Any]]:
    """An episode in which each letter of `moves` was said on the board of `boards` that has the same place."""
    turns = [Message(role="user", content=f"Begin at {boards[0]}.")]
    steps = []
    for place, move in enumerate(moves):
        step = {"turn": len(turns), "state": boards[place], "reward": rewards[place] if rewards else None}
        steps.append({name: held for name, held in step.items() if held is not None})
        turns.append(Message(role="assistant", content=move, reasoning_content="hm"))
        if place + 1 < len(boards):
            turns.append(Message(role="user", content=f"You are at {boards[place + 1]}."))
    sample = Sample(id=query, messages=[*SHOT, *PROMPT], position=position)
    rollout = Rollout(sample=sample, response_index=index, turns=turns)
    told = None if outputs is None else [StepOutput(step_index=name, base_reward=reward) for name, reward in outputs]
    verdict = (
        Failure(stage="score", type="RewardError", message="no verdict")
        if score is None
        else EvaluateResult(score=score, step_outputs=told)
    )
    return Record.of(rollout, verdict), {"steps": steps, "ended": "done", "truncated": False, **columns}


def write_results(directory: Path, *episodes: tuple[Record, dict[str, Any]]) -> Path:
    """The directory, with the episodes as the results of a run."""
    directory.mkdir(parents=True, exist_ok=True)
    with Journal(directory / "results.jsonl") as journal:
        journal.append([entry_of(record, "", result_row(record) | columns) for record, columns in episodes])
    return directory
