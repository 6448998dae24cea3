# SPDX-License-Identifier: Apache-2.0
"""Judged answers, query by query, from whatever holds them: a run directory, a results.jsonl, a best-of-N Parquet.

Reasoning is told apart from the answer in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from reward_kit.answers.command import extract_command
from reward_kit.answers.reasoning import split_reasoning
from reward_kit.errors import StorageError
from reward_kit.models import Message
from reward_kit.storage.judged import Conversation, JudgedAnswer, RolloutsBeside, Turns, is_table, read_answers
from reward_kit.storage.thresholds import Thresholds, thresholds_of
from reward_kit.storage.vocabularies import SHELL
from reward_kit.utils import exact_json
from reward_kit.utils.digest_map import DigestMap, digest64

__all__ = ["Candidate", "Query", "read_queries"]


class Candidate(NamedTuple):
    """One answer, and what was said of it."""

    candidate_idx: int
    turns: Turns
    """The answer's turns, without reasoning; none where there is no answer."""
    reasoning: str | None
    score: float | None
    is_verified: bool | None
    """None: not judged."""


class Query(NamedTuple):
    """What was asked, with all its answers."""

    id: str
    split: str | None
    prompt: Turns
    tools: str | None
    """As JSON text."""
    ground_truth: str | None
    """As text; JSON where it is not text."""
    candidates: list[Candidate]

    @property
    def judged(self) -> list[Candidate]:
        """The answers that have a verdict."""
        return [candidate for candidate in self.candidates if candidate.is_verified is not None and candidate.turns]


def read_queries(source: Path, *, threshold: float | None = None) -> Iterator[Query]:
    """The queries in `source`. A score of `threshold` verifies an answer, where the source does not say itself."""
    directory = source if source.is_dir() else source.parent
    thresholds = Thresholds() if is_table(source) and threshold is None else thresholds_of(directory, threshold)
    return _together(source, read_answers(source), thresholds, directory)


def _together(
    source: Path, answers: Iterator[JudgedAnswer], thresholds: Thresholds, directory: Path
) -> Iterator[Query]:
    """The answers to each query as one; they must stand together."""
    seen = DigestMap()
    own = (answer for answer in answers if answer.own("branch") is None)  # others share steps with an episode
    with RolloutsBeside(directory) as rollouts:
        for name, group in groupby(own, key=lambda answer: answer.id):
            key = digest64(name)
            if seen.get(key) >= 0:
                raise StorageError(
                    f"The rows of query {name!r} are not next to each other in {str(source)!r}. "
                    "Sort the file by query_id."
                )
            seen.put(key, 1)
            members = [(answer, _conversation(answer, rollouts)) for answer in group]
            first, said = members[0]
            candidates = [_candidate(answer, said.turns, thresholds) for answer, said in members]
            tools, truth = _text(first.own("tools")), _text(first.ground_truth)
            yield Query(name, first.own("split"), said.prompt, tools, truth, candidates)


def _conversation(answer: JudgedAnswer, rollouts: RolloutsBeside) -> Conversation | JudgedAnswer:
    """What was asked and answered. Lines of the shell hold only the command: the whole is in its rollout.

    Unless the command is another one: a file of commands may be changed by hand.
    """
    rollout = rollouts.get(answer.key) if SHELL.is_verified in answer.row else None
    if rollout and rollout.turns and extract_command(rollout.turns[-1].text) == answer.row[SHELL.response]:
        return Conversation(_as_turns(rollout.sample.messages), _as_turns(rollout.turns))
    return answer


def _as_turns(messages: list[Message]) -> Turns:
    return [message.model_dump(exclude_none=True) for message in messages]


def _candidate(answer: JudgedAnswer, turns: Turns, thresholds: Thresholds) -> Candidate:
    plain, thoughts = [], []
    for turn in turns:
        content = turn.get("content")
        thoughts.append(turn.get("reasoning_content"))
        if isinstance(content, str) and turn["role"] == "assistant":
            aloud, spoken = split_reasoning(content)
            content = spoken.strip() if spoken != content else content
            thoughts.append(aloud.strip())
        kept = {name: value for name, value in turn.items() if name not in ("reasoning_content", "sent_back")}
        kept["content"] = content
        plain.append(kept)
    reasoning = "\n\n".join(part for part in thoughts if part)
    return Candidate(answer.index, plain, reasoning or None, *answer.verdict(thresholds))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else exact_json.dumps(value).decode()
