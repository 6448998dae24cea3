# SPDX-License-Identifier: Apache-2.0
"""The SDK's verbs: run an evaluation, answer again and compare, preview an evaluator, create one, train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from reward_kit.evaluating import Data, Table, evaluate, evaluate_async
from reward_kit.evaluators import (
    Evaluator,
    EvaluatorPreviewResult,
    create_evaluation,
    deploy_folder_evaluation,
    huggingface_dataset_to_jsonl,
    preview_evaluation,
    preview_folder_evaluation,
)
from reward_kit.integrations.rl_jobs import JobBackend, JobRequest, LocalBackend, RLJob
from reward_kit.regenerating import Regenerated, regenerate
from reward_kit.utils.module_loader import load_function

__all__ = [
    "Data",
    "Evaluator",
    "EvaluatorPreviewResult",
    "Regenerated",
    "Table",
    "create_evaluation",
    "deploy_folder_evaluation",
    "evaluate",
    "evaluate_async",
    "huggingface_dataset_to_jsonl",
    "preview_evaluation",
    "preview_folder_evaluation",
    "regenerate",
    "start_rl_job",
]


def start_rl_job(
    model: str | Path,
    dataset: str | Path | Sequence[Mapping[str, Any]],
    reward: str,
    *,
    output_dir: str | Path,
    columns: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    method: Literal["grpo", "rloo"] = "grpo",
    backend: str | JobBackend = "local",
    **settings: Any,
) -> RLJob:
    """Start training `model` on `dataset` with the reward at an import path, and return a handle at once.

    The handle has `status`, `logs()`, `wait()` and `cancel()`. The dataset is a directory, a file, a name, or rows with
    a `prompt` each; `columns` says which of its columns fills which parameter of the reward. The local backend runs
    `trl grpo` (or `rloo`) on this machine, which goes on when this process ends. `fireworks` brings the data and the
    reward there and trains there. Another is given as an object or by the import path of something that makes one. All
    other keywords are settings of the trainer.

        job = start_rl_job("Qwen/Qwen3-0.6B", "sums.jsonl", "my_rewards:correct", output_dir="outputs/t", max_steps=200)
        job.wait()
    """
    request = JobRequest(
        model=str(model),
        dataset=str(dataset) if isinstance(dataset, str | Path) else dataset,
        reward=reward,
        output_dir=Path(output_dir),
        columns=columns,
        params=params or {},
        method=method,
        settings=settings,
    )
    return _backend(backend).start(request)


def _backend(given: str | JobBackend) -> JobBackend:
    if not isinstance(given, str):
        return given
    if given == "local":
        return LocalBackend()
    if given == "fireworks":
        from reward_kit.deploy.fireworks.rl_backend import FireworksBackend

        return FireworksBackend()
    made: JobBackend = load_function(given)()
    return made
