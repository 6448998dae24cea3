# SPDX-License-Identifier: Apache-2.0
"""TaskManager: agent tasks by name, each evaluated as a run of its own that can be gone on with."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reward_kit.agent.orchestrator import Orchestrator
from reward_kit.agent.resource_pool import ResourcePool
from reward_kit.errors import ConfigError, RewardKitError
from reward_kit.execution.agent_tasks.definition import config_of, directory_name, load_task, samples_of, task_files
from reward_kit.execution.agent_tasks.trajectory import aggregate, individual_results, write_trajectory
from reward_kit.execution.engine import Reporter
from reward_kit.execution.options import RunOptions
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.models import TaskDefinitionModel

__all__ = ["TaskManager"]

_log = logging.getLogger(__name__)


class TaskManager:
    """Agent tasks, and their evaluation.

    With an `output_dir`, each task has a run directory in it: evaluating again goes on where it was, and pays nothing
    twice. Without one, the files are temporary.
    """

    def __init__(
        self,
        *,
        output_dir: str | Path | None = None,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        rescore: bool = False,
        retry_failed: bool = False,
        keep_going: bool = False,
    ) -> None:
        """No tasks yet. `model` is used instead of the environment's MODEL_AGENT.

        `settings` of a run, each by its place, count before those of the tasks.

        `rescore` judges the episodes that are there again; `retry_failed` tries those again that failed;
        `keep_going` goes on where the first ones could not be judged, all for the same reason.
        """
        self.tasks: dict[str, TaskDefinitionModel] = {}
        self.resource_pool = ResourcePool()
        self.orchestrators: dict[str, Orchestrator] = {}
        self.runs: dict[str, RunResult] = {}
        """How the run of each task ended that was evaluated."""
        self._output_dir = None if output_dir is None else Path(output_dir)
        self._model, self._settings = model, settings
        self._rescore, self._retry_failed, self._keep_going = rescore, retry_failed, keep_going
        self._reporter: Reporter | None = None

    # -- which tasks there are

    def register_task(
        self, task_definition_or_name: TaskDefinitionModel | str, task_definition: TaskDefinitionModel | None = None
    ) -> str:
        """Take a task, under its own name or another; the name."""
        if isinstance(task_definition_or_name, TaskDefinitionModel):
            name, task = task_definition_or_name.name, task_definition_or_name
        elif task_definition is not None:
            name, task = task_definition_or_name, task_definition
        else:
            raise ValueError("register_task takes a definition, or a name and a definition")
        if name in self.tasks:
            _log.warning("The task %r was registered already; the new definition counts.", name)
        self.tasks[name] = task
        return name

    def register_tasks_from_directory(self, directory_path: str) -> list[str]:
        """Take every task file of a directory; those that cannot be read are logged and left out."""
        path = Path(directory_path)
        if not path.is_dir():
            _log.error("There is no directory %r.", directory_path)
            return []
        loaded = [self._load_task_from_file(str(file)) for file in task_files(path)]
        return [self.register_task(task) for task in loaded if task is not None]

    def _load_task_from_file(self, file_path: str) -> TaskDefinitionModel | None:
        """The task of a file; None, and a line in the log, where it cannot be read."""
        try:
            task_files(Path(file_path))
            return load_task(Path(file_path))
        except RewardKitError as error:
            _log.error("%s", error)
            return None

    # -- one episode

    async def prepare_task(self, task_id: str) -> bool:
        """Set up a task's resource, to see whether it can be; whether it could."""
        if task_id not in self.tasks:
            _log.error("There is no task %r; register it first.", task_id)
            return False
        orchestrator = Orchestrator(self.tasks[task_id])
        try:
            await orchestrator.setup_base_resource()
        except Exception as error:  # noqa: BLE001 - a named boundary: somebody's resource
            _log.error("The resource of task %r could not be set up: %s", task_id, error)
            return False
        self.orchestrators[task_id] = orchestrator
        return True

    async def execute_task(self, task_id: str) -> dict[str, Any] | None:
        """Play one episode of a task and judge it, without keeping anything; see `Orchestrator.execute_task_poc`."""
        if task_id not in self.orchestrators and not await self.prepare_task(task_id):
            return None
        return await self.orchestrators[task_id].execute_task_poc()

    # -- whole evaluations

    async def execute_tasks(
        self,
        task_ids: list[str] | None = None,
        parallel: bool = False,
        max_concurrency: int = 3,
        num_rollouts_override: int | None = None,
    ) -> dict[str, Any]:
        """Evaluate tasks, one after the other or several at once; the inherited figures of each.

        `max_concurrency` bounds the tasks at a time where they are `parallel`, and the episodes at a time of each.
        """
        chosen = list(self.tasks) if task_ids is None else task_ids
        if unknown := [name for name in chosen if name not in self.tasks]:
            _log.warning("There is no task called %s; registered: %s.", ", ".join(unknown), ", ".join(self.tasks))
        known = [name for name in chosen if name in self.tasks]
        places = asyncio.Semaphore(max_concurrency if parallel else 1)

        async def evaluated(name: str) -> tuple[str, dict[str, Any]]:
            async with places:
                return name, await self._evaluated(name, max_concurrency, num_rollouts_override)

        return dict(await asyncio.gather(*(evaluated(name) for name in known)))

    def report_to(self, reporter: Reporter | None) -> None:
        """Have the progress of runs shown."""
        self._reporter = reporter

    async def _evaluated(self, task_id: str, concurrency: int, rollouts: int | None) -> dict[str, Any]:
        try:
            if self._output_dir is not None:
                return await self._run(task_id, self._output_dir, concurrency, rollouts)
            directory = Path(tempfile.mkdtemp(prefix="reward-kit-agent-"))
            try:
                return await self._run(task_id, directory, concurrency, rollouts)
            finally:
                await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        except ConfigError:
            raise
        except RewardKitError as error:
            return {**aggregate([]), "error": str(error)}

    async def _run(self, task_id: str, above: Path, concurrency: int, rollouts: int | None) -> dict[str, Any]:
        task, directory = self.tasks[task_id], above / directory_name(task_id)
        config = config_of(
            task, directory, model=self._model, rollouts=rollouts, concurrency=concurrency, settings=self._settings
        )
        options = RunOptions(
            samples=samples_of(task), rescore=self._rescore, retry_failed=self._retry_failed,
            keep_going=self._keep_going, reporter=self._reporter,
        )  # fmt: skip
        result = await EvaluationPipeline(config, options).run_async()
        self.runs[task_id] = result
        figures = aggregate(individual_results(task_id, result))
        write_trajectory(task_id, figures, directory)
        return figures

    # -- cleaning up

    def cleanup_all_servers(self) -> None:
        """Nothing: a task's server ends with its run."""

    async def cleanup(self, task_ids: list[str] | None = None) -> None:
        """Close what was prepared for tasks, or for all of them."""
        for name in list(self.orchestrators) if task_ids is None else task_ids:
            orchestrator = self.orchestrators.pop(name, None)
            if orchestrator is not None:
                await orchestrator.close()
        if task_ids is None:
            await self.resource_pool.close_all_resources()
