# SPDX-License-Identifier: Apache-2.0
"""Judged episodes, sample by sample, from the `results.jsonl` of a run: turns, steps, and what was said of them.

An answer of a model that was asked once is an episode, too: each of its assistant turns is a step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.errors import ConfigError
from reward_kit.models import Record, StepOutput
from reward_kit.storage.judged import JudgedAnswer, Turns, is_table, read_answers
from reward_kit.storage.row_json import json_text
from reward_kit.storage.run_directory import RESULTS
from reward_kit.storage.tables import result_row
from reward_kit.storage.thresholds import Thresholds
from reward_kit.storage.vocabularies import RUN
from reward_kit.utils import exact_json

__all__ = ["BranchPoint", "EpisodeStep", "JudgedEpisode", "episode_of", "read_episodes"]


class EpisodeStep(NamedTuple):
    """One action of the model."""

    turn: int
    """Which of the episode's turns it is."""
    state: str | None = None
    """A digest of what the model saw before it; steps with the same one began in the same state."""
    reward: float | None = None
    """What the world gave for it."""
    tokens: Mapping[str, Any] | None = None
    """`prompt_ids`, `ids` and `logprobs`, where the endpoint told them."""
    tools: list[dict[str, Any]] | None = None
    """The tools that were offered, where they are others than in the step before."""


class BranchPoint(NamedTuple):
    """Where an episode left another one of its sample: it shares the steps before `step`."""

    response_index: int
    step: int


class JudgedEpisode(NamedTuple):
    """One episode, and what was said of it."""

    query_id: str
    response_index: int
    split: str | None
    prompt: Turns
    turns: Turns
    """What the model and the world added to the prompt."""
    steps: list[EpisodeStep]
    score: float | None
    """None: it failed, or was not judged."""
    step_outputs: list[StepOutput] | None = None
    """What the reward said of single steps."""
    ended: str | None = None
    truncated: bool | None = None
    branch: BranchPoint | None = None


def read_episodes(source: Path) -> Iterator[list[JudgedEpisode]]:
    """The episodes of each sample in a run directory, or in its `results.jsonl`, in the run's order."""
    if not source.exists() or is_table(source):
        raise ConfigError(f"{str(source)!r} holds no {RESULTS}. Name the output directory of a run that judged.")
    return _by_sample(read_answers(source), repr(str(source)))


def _by_sample(answers: Iterator[JudgedAnswer], source: str) -> Iterator[list[JudgedEpisode]]:
    for _, episodes in groupby((_episode(answer, source) for answer in answers), key=lambda one: one.query_id):
        yield list(episodes)


def episode_of(record: Record) -> JudgedEpisode:
    """A record that is not on disk, as reading it from there would give it."""
    row = exact_json.loads(json_text(result_row(record)))
    head = {"id": record.rollout.sample.id, "response_index": record.rollout.response_index}
    return _episode(JudgedAnswer(row | head), "the record")


def _episode(answer: JudgedAnswer, source: str) -> JudgedEpisode:
    row = answer.row
    if RUN.query not in row:
        raise ConfigError(f"{source} holds no episodes. Name the output directory of `reward-kit run`.")
    prompt, turns = answer.prompt, answer.turns
    outputs, branch = row.get("step_outputs"), row.get("branch")
    return JudgedEpisode(
        *answer.key,
        prompt=prompt,
        turns=turns,
        split=row["split"],
        steps=_assistant_turns(prompt, turns) if row.get("steps") is None else [*map(_step, row["steps"])],
        score=answer.verdict(Thresholds()).score,
        step_outputs=None if outputs is None else [StepOutput.model_validate(output) for output in outputs],
        ended=row.get("ended"),
        truncated=row.get("truncated"),
        branch=None if branch is None else BranchPoint(branch["response_index"], branch["step"]),
    )


def _step(held: Mapping[str, Any]) -> EpisodeStep:
    return EpisodeStep(held["turn"], *map(held.get, EpisodeStep._fields[1:]))


def _assistant_turns(prompt: Turns, turns: Turns) -> list[EpisodeStep]:
    """The steps of an answer of which nobody noted any: its state is the whole conversation before it."""
    seen, steps = hashlib.blake2b(exact_json.dumps(prompt), digest_size=16), []
    for place, turn in enumerate(turns):
        if turn["role"] == "assistant":
            steps.append(EpisodeStep(place, seen.hexdigest()))
        seen.update(exact_json.dumps(turn))
    return steps
