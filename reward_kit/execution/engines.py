# SPDX-License-Identifier: Apache-2.0
"""Where the stages of a run can run: engines by the name that a config gives them, each loaded when it is wanted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from reward_kit.execution.counters import RunCounters
from reward_kit.execution.engine import Engine
from reward_kit.execution.options import RunInputs
from reward_kit.generation.budget import Budget
from reward_kit.storage.projected_file import ProjectedFile

__all__ = ["ENGINES", "engine_of"]

ENGINES = {
    "local": ("local_engine", "LocalEngine"),
    "ray": ("ray_engine.engine", "RayEngine"),
}
"""By name, the file and the class."""


def engine_of(
    inputs: RunInputs, directory: Path, counters: RunCounters, budget: Budget, beside: ProjectedFile | None
) -> Engine:
    """The engine that the config names; `beside` the rollouts, a second file may have them in other columns."""
    file, name = ENGINES[inputs.config.engine.name]
    engine: type[Engine] = getattr(import_module(f"reward_kit.execution.{file}"), name)
    options = inputs.options
    return engine(
        inputs.config, directory, counters, options.reporter, options.vocabulary,
        budget=budget, beside=beside, reward=options.reward,
    )  # fmt: skip
