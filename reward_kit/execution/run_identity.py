# SPDX-License-Identifier: Apache-2.0
"""What makes a run this run: the settings its rollouts depend on, and those its results depend on.

How many answers are drawn, how many samples are read, and how many requests are sent at a time are left out on purpose:
whoever raises them goes on in the same directory and pays only for what is new.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from reward_kit.config_models import (
    AgentConfig,
    DatasetConfig,
    GenerationConfig,
    PipelineConfig,
    dataset_without_unused,
)
from reward_kit.redaction import without_secrets
from reward_kit.scoring.identity import model_settings, reward_settings
from reward_kit.scoring.rewards import Reward, Rewards
from reward_kit.storage.journal import Journal
from reward_kit.storage.run_directory import digest_of
from reward_kit.storage.tables import rollout_from_line
from reward_kit.utils.module_loader import load_function, source_digest

__all__ = ["reading_of", "results_settings", "rollouts_settings"]


def rollouts_settings(config: PipelineConfig, rollouts_file: Path | None = None) -> dict[str, Any]:
    """What the rollouts depend on, beside the content of each sample, which its own digest covers.

    `rollouts_file` is where the file of rollouts that the config names can be read on this machine.
    """
    if config.rollouts_file is not None:
        at_hand = rollouts_file or Path(config.rollouts_file)
        return {"rollouts_file": PurePath(config.rollouts_file).name, **_made_with(at_hand)}
    settings: dict[str, Any] = {"system_prompt": config.system_prompt}
    if config.dataset is not None:
        settings |= {f"dataset.{name}": value for name, value in _dataset(config.dataset).items()}
    settings |= {f"generation.{name}": value for name, value in _generation(config.generation).items()}
    if config.agent is not None and config.generation.enabled:
        settings |= {f"agent.{name}": value for name, value in _agent(config.agent).items()}
    return settings


def _made_with(rollouts_file: Path) -> dict[str, Any]:
    """How the rollouts in a file were made, by the first of them: most such files have the same name."""
    with Journal(rollouts_file, read_only=True) as journal:
        if not journal.holds_lines:
            return {}
        first = rollout_from_line(journal.line_at(0), journal.samples)
    return {"rollouts.model": first.model, "rollouts.sampling": first.sampling}


def results_settings(rewards: Rewards, run: PipelineConfig) -> dict[str, Any]:
    """What the results depend on, beside the rollouts: each reward, and what it uses of the run's settings."""
    named = {
        f"{split}.{name}": value
        for split, reward in rewards.by_split.items()
        for name, value in _reward(reward, run).items()
    }
    return _reward(rewards.others, run) | named


def _reward(reward: Reward, run: PipelineConfig) -> dict[str, Any]:
    """Of one reward: what makes it this one, its sandbox, its judge and its world."""
    world = {f"world.{name}": value for name, value in _world(reward, run).items()}
    return {**reward_settings(reward, run.sandbox, run.judge), **world}


def _world(reward: Reward, run: PipelineConfig) -> dict[str, Any]:
    if run.agent is None or not reward.call.wants("world"):
        return {}
    from reward_kit.agent.from_settings import environment_settings, environment_source

    return {**environment_settings(run.agent), "source": environment_source(run.agent)}


def _dataset(dataset: DatasetConfig) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "source": None if dataset.path_or_name is None else PurePath(dataset.path_or_name).name,
        "base_dataset": None if dataset.base_dataset is None else _dataset(dataset.base_dataset),
    }
    named = ("split", "config_name", "column_mapping", "preprocess", "system_prompt", "prompt_template")
    shape: dict[str, Any] = {} if dataset.format == "auto" else {"format": dataset.format}
    shape |= {} if dataset.revision is None else {"revision": dataset.revision}
    for name, part in (("choices", dataset.choices), ("few_shot", dataset.few_shot)):
        shape |= {} if part is None else {name: part.model_dump()}
    return settings | shape | {name: value for name, value in dataset.model_dump().items() if name in named}


def reading_of(dataset: DatasetConfig | None) -> str | None:
    """A digest of all that decides what is read from unchanged files: every setting, and the code that preprocesses."""
    if dataset is None:
        return None
    code = [source_digest(load_function(path)) for path in dataset.preprocess]
    written = dataset.model_dump(exclude={"base_dataset", "storage_options"})
    settings = without_secrets(dataset_without_unused(written))
    return digest_of([settings, code, reading_of(dataset.base_dataset)])


def _generation(generation: GenerationConfig) -> dict[str, Any]:
    if not generation.enabled:
        return {"enabled": False}
    return model_settings(generation)


def _agent(agent: AgentConfig) -> dict[str, Any]:
    """What an agent's episodes depend on: the worlds, and where they are cut off."""
    from reward_kit.agent.from_settings import environment_settings  # here: most runs have no agent

    limits = agent.model_dump(exclude=_NOT_OF_AN_EPISODE)
    set_here = {name: value for name, value in limits.items() if value not in (None, [], {}, False)}
    return {**set_here, **environment_settings(agent)}


_NOT_OF_AN_EPISODE = {"concurrency", "world_timeout", "world_retries", "durability", "branching", "user"}
"""Settings of an agent that change how its episodes are played, and not what comes out."""
