# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the fixture `reward_kit_run` evaluates inside a test, with the files in the test's `tmp_path`.

pytest loads this module whenever the package is installed, so it imports nothing until the fixture is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from reward_kit.execution.result import RunResult

__all__ = ["RewardKitRun", "reward_kit_run"]


class RewardKitRun:
    """Evaluates, as often as a test calls it; each run has a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0

    def __call__(self, what: Any, /, *arguments: Any, **settings: Any) -> RunResult:
        """Evaluate data with a reward, or run a config file.

        reward_kit_run(rows, my_reward, model="mock", n=4)      as `reward_kit.evaluate`
        reward_kit_run("conf/math.yaml", "generation.n=4")      as `reward-kit run`
        """
        self._runs += 1
        output_dir = self._directory / (f"reward_kit_run_{self._runs}" if self._runs > 1 else "reward_kit_run")
        if isinstance(what, str | Path) and str(what).endswith((".yaml", ".yml")):
            return _run_config(str(what), [*map(str, arguments)], output_dir, **settings)
        from reward_kit.evaluation import evaluate

        return evaluate(what, *arguments, **{"output_dir": output_dir, **settings})


def _run_config(config: str, overrides: list[str], output_dir: Path, **options: Any) -> RunResult:
    from reward_kit.cli_commands.benchmark_configs import as_plain_run
    from reward_kit.cli_commands.config_paths import resolve_paths
    from reward_kit.cli_commands.hydra_config import compose_jobs, find_config
    from reward_kit.execution.pipeline import EvaluationPipeline

    file, rest = find_config(None, None, [config, *overrides])
    (job,) = compose_jobs(file, rest, sweep=False)
    values = resolve_paths(as_plain_run(job.values), file.directory)
    values["output"] = {**(values.get("output") or {}), "output_dir": str(output_dir)}
    return EvaluationPipeline(values, **options).run()


@pytest.fixture
def reward_kit_run(tmp_path: Path) -> RewardKitRun:
    """Evaluate with a reward, or run a config of reward-kit, into this test's `tmp_path`; returns its `RunResult`."""
    return RewardKitRun(tmp_path)
