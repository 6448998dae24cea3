# SPDX-License-Identifier: Apache-2.0
"""A step of GRPO without a model: stored answers take the place of completions, and the advantages are worked out.

    stored answers, grouped by prompt ─▶ the reward, called as TRL calls it ─▶ rewards ─▶ advantages in each group

What a training would learn from shows before one is paid for: prompts whose answers all have the same reward teach
nothing, and a reward that cannot judge an answer says so here. Needs neither torch nor trl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reward_kit.agent.credit import grpo
from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.loader import load_rollouts, load_samples
from reward_kit.integrations.trl import create_trl_adapter
from reward_kit.models import Sample

__all__ = ["Rehearsal", "RehearsedGroup", "rehearse", "training_prompts"]


@dataclass(frozen=True)
class RehearsedGroup:
    """The answers to one prompt."""

    id: str
    rewards: list[float | None]
    """One per answer; None where it could not be judged."""
    advantages: list[float | None]
    """What GRPO makes of the rewards: above 0, the answer is made more likely."""

    @property
    def teaches(self) -> bool:
        """Whether the rewards differ, so that there is something to learn."""
        return any(self.advantages)


@dataclass(frozen=True)
class Rehearsal:
    """One step over all prompts."""

    groups: list[RehearsedGroup]
    failed: int
    """Answers that could not be judged."""

    @property
    def teaching(self) -> int:
        """Prompts whose answers have different rewards."""
        return sum(group.teaches for group in self.groups)

    def lines(self, most: int = 10) -> list[str]:
        """A table of the first groups, and a line that sums all of them up."""
        width = max(len("prompt"), *(len(group.id) for group in self.groups[:most]))
        table = [f"{'prompt':<{width}}  reward → advantage of each answer"]
        table += [f"{group.id:<{width}}  {_pairs(group)}" for group in self.groups[:most]]
        if len(self.groups) > most:
            table.append(f"… and {len(self.groups) - most} more")
        judged = [reward for group in self.groups for reward in group.rewards if reward is not None]
        mean = f"mean reward {sum(judged) / len(judged):.3f}" if judged else "nothing was judged"
        failed = f", {self.failed} answers not judged" if self.failed else ""
        return [*table, "", f"{self.teaching} of {len(self.groups)} prompts teach something, {mean}{failed}"]


def rehearse(
    stored: str | Path,
    reward: Callable[..., Any] | str,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> Rehearsal:
    """Judge the stored answers of a file as one step of GRPO, and work out the advantages.

    `params` are given to every call; the options are those of `TRLAdapter`, such as `timeout` and `workers`.
    """
    rollouts = list(load_rollouts(DatasetConfig(path_or_name=str(stored))))
    rows = [_row(rollout.sample) for rollout in rollouts]
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in dict.fromkeys(
        name for row in rows for name in row
    )}  # fmt: skip
    completions = [[turn.model_dump(exclude_none=True) for turn in rollout.turns] for rollout in rollouts]
    adapter = create_trl_adapter(reward, None, params, **options)
    try:
        rewards = adapter(prompts=columns.pop("prompt"), completions=completions, **columns)
    finally:
        adapter.close()
    ids = [rollout.sample.id for rollout in rollouts]
    advantages = grpo(rewards, ids)
    members: dict[str, list[int]] = {}
    for place, name in enumerate(ids):
        members.setdefault(name, []).append(place)
    groups = [
        RehearsedGroup(name, [rewards[place] for place in places], [advantages[place] for place in places])
        for name, places in members.items()
    ]
    return Rehearsal(groups, adapter.failures)


def training_prompts(
    dataset: str | Path | DatasetConfig, *, system_prompt: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """The rows of a dataset as TRL's trainers take them: `prompt` as messages, `ground_truth`, and the other columns.

    GRPOTrainer(..., train_dataset=Dataset.from_list(training_prompts("dataset.jsonl")))
    """
    config = dataset if isinstance(dataset, DatasetConfig) else DatasetConfig(path_or_name=str(dataset))
    return [_row(sample) for sample in load_samples(config, system_prompt=system_prompt, limit=limit)]


def _row(sample: Sample) -> dict[str, Any]:
    known = {"ground_truth": sample.ground_truth, "tools": sample.tools}
    return {
        "prompt": [turn.model_dump(exclude_none=True) for turn in sample.messages],
        **{name: value for name, value in known.items() if value is not None},
        **sample.columns,
    }


def _pairs(group: RehearsedGroup) -> str:
    return "   ".join(
        "not judged" if reward is None or advantage is None else f"{reward:.2f} → {advantage:+.2f}"
        for reward, advantage in zip(group.rewards, group.advantages, strict=True)
    )
