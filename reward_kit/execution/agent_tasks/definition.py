# SPDX-License-Identifier: Apache-2.0
"""A task's file, and the run that it stands for.

task.yaml ─▶ TaskDefinitionModel ─▶ config with an `agent:` section, and samples ─▶ EvaluationPipeline
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reward_kit.agent.agent_model import model_settings
from reward_kit.agent.orchestrator import agent_settings
from reward_kit.agent.rl_rollout_worker import ground_truth_of
from reward_kit.agent.task_environment import opening_messages
from reward_kit.config_models import PipelineConfig, load_config
from reward_kit.datasets.files import files_of
from reward_kit.datasets.ground_truths import is_held
from reward_kit.datasets.interpret import RowReader
from reward_kit.datasets.rows import BadRow, BadRows
from reward_kit.datasets.sources import JsonlSource
from reward_kit.doors import nested
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.models import SYSTEM_ROLES, Message, Sample, TaskDefinitionModel
from reward_kit.utils.strict_yaml import load_yaml, read_yaml_text

__all__ = ["config_of", "directory_name", "load_task", "samples_of", "task_files"]

_FILE_KEYS = ("schema_file", "seed_data_file", "db_file")
_SUFFIXES = (".yaml", ".yml", ".json")
_MODEL = "generation.model_name"


def task_files(path: Path) -> list[Path]:
    """The file itself, or the task files in a directory, by name."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    if not path.is_file():
        raise ConfigError(f"There is no task definition {str(path)!r}. Name a YAML or JSON file, or a directory.")
    return [path]


def load_task(path: Path) -> TaskDefinitionModel:
    """The task that a file defines. Files that it names are looked for where the command runs, then beside it."""
    name = f"The task definition {str(path)!r}"
    raw = load_yaml(read_yaml_text(path, name, "Name a file that can be read."), name)  # JSON is YAML
    if not isinstance(raw, Mapping):
        raise ConfigError(f"The task definition {str(path)!r} is not a mapping. See docs/agent-tasks.md for its keys.")
    try:
        return TaskDefinitionModel.model_validate(_found(raw, path.parent))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigError(
            f"The task definition {str(path)!r} has a problem with {place!r}: {problem['msg']}. Correct it."
        ) from None


def _found(raw: Mapping[str, Any], beside: Path) -> dict[str, Any]:
    """The definition with the files that it names found."""
    task = dict(raw)
    for key in ("reward_function_path", "tools_module_path"):
        if isinstance(task.get(key), str):
            file, colon, name = task[key].partition(":")
            task[key] = f"{_file(file, beside)}{colon}{name}" if file.endswith(".py") else task[key]
    if isinstance(task.get("dataset_path"), str):
        task["dataset_path"] = _file(task["dataset_path"], beside)
    resource = task.get("base_resource_config")
    if isinstance(resource, Mapping):
        files = {key: _file(resource[key], beside) for key in _FILE_KEYS if isinstance(resource.get(key), str)}
        task["base_resource_config"] = {**resource, **files}
    generation = task.get("generation")
    mock = generation.get("mock") if isinstance(generation, Mapping) else None
    if isinstance(generation, Mapping) and isinstance(mock, Mapping) and isinstance(mock.get("function_path"), str):
        file, colon, name = mock["function_path"].partition(":")
        task["generation"] = {**generation, "mock": {**mock, "function_path": f"{_file(file, beside)}{colon}{name}"}}
    return task


def _file(name: str, beside: Path) -> str:
    if Path(name).is_absolute() or Path(name).exists() or not (beside / name).exists():
        return name
    return os.path.relpath(beside / name)


def samples_of(task: TaskDefinitionModel) -> list[Sample]:
    """What is played: the task itself, or one sample for each row of its dataset."""
    opening, truth = opening_messages(task), ground_truth_of(task)
    if task.dataset_path is None:
        if not opening:
            raise ConfigError(
                f"The task {task.name!r} has no text for the model. Give it `messages` or an `initial_user_prompt`."
            )
        return [Sample(id=task.name, messages=opening, ground_truth=truth)]
    return list(_rows(task, opening, truth))


def _rows(task: TaskDefinitionModel, opening: list[Message], truth: Any) -> Iterator[Sample]:
    reader, bad = RowReader(), BadRows(skip=False)
    reader.world_opens = True
    for place, row in enumerate(JsonlSource(files_of(str(task.dataset_path))).rows(bad)):
        try:
            question = reader.question({**row.columns})
        except BadRow as problem:
            bad.report(row.origin, row.number, str(problem))
            continue
        right = truth if question.ground_truth is None else question.ground_truth
        asked = _in_the_task(question.messages, opening, has_turns=is_held(row.columns.get("messages")))
        ready = question._replace(messages=asked, ground_truth=right)
        yield ready.sample(question.name if question.named else f"{task.name}-{place}", place, row.written)


def _in_the_task(asked: list[Message], opening: list[Message], *, has_turns: bool) -> list[Message]:
    """What a row asks, after the task's system prompt unless it has its own; if it asks nothing, the task's opening."""
    if all(turn.role in SYSTEM_ROLES for turn in asked):
        return opening
    if has_turns or asked[0].role in SYSTEM_ROLES:
        return asked
    return [*(turn for turn in opening if turn.role in SYSTEM_ROLES), *asked]


def config_of(
    task: TaskDefinitionModel,
    output_dir: Path,
    *,
    model: str | None = None,
    rollouts: int | None = None,
    concurrency: int = 3,
    settings: Mapping[str, Any] | None = None,
) -> PipelineConfig:
    """The settings of the run that a task stands for. The task's own keys `generation` and `agent` are taken over.

    `settings`, each by its place, count before all of these.
    """
    given = dict(settings or {})
    generation = dict((task.model_extra or {}).get("generation") or {})
    if (model := given.pop(_MODEL, model)) is not None or "model_name" not in generation:
        generation |= model_settings(model)
    per_sample = task.num_rollouts if task.dataset_path is None else task.num_rollouts_per_sample
    return load_config(
        nested(
            {
                "generation": {**generation, "n": rollouts or per_sample},
                "agent": {
                    **agent_settings(task),
                    "concurrency": concurrency,
                    "environment": "reward_kit.agent.task_environment:TaskEnvironment",
                    "params": {"task": task.model_dump(exclude_none=True, exclude={"generation", "agent"})},
                },
                "reward": {
                    "function_path": "reward_kit.agent.task_reward:task_reward",
                    "params": {"reward": task.reward_function_path, "task": task.name},
                },
                "output": {"output_dir": str(output_dir)},
                **given,
            }
        )
    )


def directory_name(task_id: str) -> str:
    """A task's name as that of a directory."""
    name = re.sub(r"[^\w.-]+", "_", task_id).strip("._")
    if not name:
        raise DatasetError(f"The task {task_id!r} has no letter or digit in its name. Give it another.")
    return name[:100]
