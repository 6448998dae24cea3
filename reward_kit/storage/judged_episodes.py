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
from reward_kit.storage.candidates import Turns, split_off_answer
from reward_kit.storage.journal import Journal
from reward_kit.storage.row_json import json_text
from reward_kit.storage.run_directory import RESULTS, refuse_cut
from reward_kit.storage.tables import result_row
from reward_kit.storage.thresholds import Thresholds
from reward_kit.storage.vocabularies import RUN, refuse_other_columns, verdict_of, vocabulary_of
from reward_kit.utils import exact_json
from reward_kit.utils.checksums import check_line

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
    split: str | None
    response_index: int
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
    path = source / RESULTS if source.is_dir() else source
    if not path.exists() or path.suffix.lower() != ".jsonl":
        raise ConfigError(f"{str(source)!r} holds no {RESULTS}. Name the output directory of a run that judged.")
    return _by_sample(path)


def episode_of(record: Record) -> JudgedEpisode:
    """A record that is not on disk, as reading it from there would give it."""
    row = exact_json.loads(json_text(result_row(record)))
    head = {"id": record.rollout.sample.id, "response_index": record.rollout.response_index}
    return _episode(row | head, "the record")


def _by_sample(path: Path) -> Iterator[list[JudgedEpisode]]:
    with Journal(path, read_only=True) as journal:
        refuse_cut(journal)
        rows = (_from_line(line, path) for line in journal.in_order())
        for _, episodes in groupby(rows, key=lambda episode: episode.query_id):
            yield list(episodes)


def _from_line(line: bytes, path: Path) -> JudgedEpisode:
    row = exact_json.loads(line)
    if not check_line(line):
        refuse_other_columns(row, f"The result {row['response_index']} of {row['id']!r} in {str(path)!r}")
    return _episode(row, repr(str(path)))


def _episode(row: dict[str, Any], source: str) -> JudgedEpisode:
    if vocabulary_of(row).name != RUN.name:
        raise ConfigError(f"{source} holds no episodes. Name the output directory of `reward-kit run`.")
    prompt, turns, steps = _steps(row)
    outputs, branch = row.get("step_outputs"), row.get("branch")
    return JudgedEpisode(
        query_id=row["id"],
        split=row["split"],
        response_index=row["response_index"],
        prompt=prompt,
        turns=turns,
        steps=steps,
        score=verdict_of(row, Thresholds()).score,
        step_outputs=None if outputs is None else [StepOutput.model_validate(output) for output in outputs],
        ended=row.get("ended"),
        truncated=row.get("truncated"),
        branch=None if branch is None else BranchPoint(branch["response_index"], branch["step"]),
    )


def _steps(row: dict[str, Any]) -> tuple[Turns, Turns, list[EpisodeStep]]:
    """What was asked, what was added to it, and the model's steps among the latter."""
    messages: Turns = row["messages"]
    told = row.get("steps")
    if told is None:
        prompt, turns = split_off_answer(messages)
        return prompt, turns, _assistant_turns(prompt, turns)
    spoken = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    # The last step is the last turn of the assistant, which tells where the turns begin.
    begin = spoken[-1] - told[-1]["turn"] if told and spoken else len(messages)
    steps = [EpisodeStep(s["turn"], s.get("state"), s.get("reward"), s.get("tokens"), s.get("tools")) for s in told]
    return messages[:begin], messages[begin:], steps


def _assistant_turns(prompt: Turns, turns: Turns) -> list[EpisodeStep]:
    """The steps of an answer of which nobody noted any: its state is the whole conversation before it."""
    seen, steps = hashlib.blake2b(exact_json.dumps(prompt), digest_size=16), []
    for place, turn in enumerate(turns):
        if turn["role"] == "assistant":
            steps.append(EpisodeStep(place, seen.hexdigest()))
        seen.update(exact_json.dumps(turn))
    return steps
