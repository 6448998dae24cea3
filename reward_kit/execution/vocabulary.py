# SPDX-License-Identifier: Apache-2.0
"""How a run is told: the columns of its result lines and the figures of its summary. Each front door has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reward_kit.config_models import RewardConfig
from reward_kit.execution.summary import summarise
from reward_kit.models import Record
from reward_kit.storage.projected_file import ProjectedFile
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.storage.tables import result_row

__all__ = ["RUN", "Vocabulary"]

Summary = dict[str, Any]


def _thresholds(reward: RewardConfig) -> dict[str, float]:
    return {split: part.pass_threshold for split, part in reward.by_split.items()}


def _as_it_is(summary: Summary, _: RunDirectory) -> Summary:
    return summary


def _nothing(_: RunDirectory) -> None:
    """There is nothing to see to."""


@dataclass(frozen=True)
class Vocabulary:
    """What a front door calls things."""

    result_row: Callable[[Record], dict[str, Any]] = result_row
    """A record as the columns of a line of `results.jsonl`."""
    figures: Callable[[Iterable[dict[str, Any]], RewardConfig], Summary] = lambda rows, reward: summarise(
        rows, pass_threshold=reward.pass_threshold, by_split=_thresholds(reward)
    )
    """The figures of such lines, which come in dataset order."""
    summary: Callable[[Summary, RunDirectory], Summary] = _as_it_is
    """The summary of a phase as it is written to the run directory, which is still locked."""
    projection: Callable[[Path], ProjectedFile] | None = None
    """The second file in which the run directory tells its rollouts, where there is one. What it projects is scored."""
    prepare: Callable[[RunDirectory], None] = _nothing
    """What else is to be seen to in the run directory, which is locked, before its journals are opened."""


RUN = Vocabulary()
"""The vocabulary of `reward-kit run`."""
