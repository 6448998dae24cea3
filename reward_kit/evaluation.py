"""The SDK's verbs: `evaluate` runs a whole evaluation from Python, `start_rl_job` starts a training."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from reward_kit.config_models import load_config
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.execution.result import RunResult
from reward_kit.execution.summary import about_invalid
from reward_kit.generation.client import ModelClient
from reward_kit.integrations.rl_jobs import JobBackend, JobRequest, LocalBackend, RLJob
from reward_kit.models import Sample
from reward_kit.typed_interface import name_of
from reward_kit.utils.module_loader import load_function

__all__ = ["evaluate", "start_rl_job"]

_log = logging.getLogger(__name__)


def evaluate(
    dataset: str | Path | Iterable[Sample | Mapping[str, Any]],
    reward: Callable[..., Any] | str,
    *,
    model: str | ModelClient | None = None,
    n: int = 1,
    params: Mapping[str, Any] | None = None,
    reward_settings: Mapping[str, Any] | None = None,
    output_dir: str | Path | None = None,
    **settings: Any,
) -> RunResult:
    """Judge n answers a sample with `reward`, and return the figures.

    `dataset` is a file, a Hugging Face name, or a list of rows or samples; `reward` a function, decorated or plain, or
    its import path. Without a `model`, the answers are taken from the data. Without an `output_dir` the files go to a
    temporary directory; with one, the run is durable and calling again resumes it.

    `params` reach the reward by name; `reward_settings` are further keys of the config's `reward`, such as `timeout` or
    `pass_threshold`. All other keywords are settings of the config: `generation={"temperature": 0.2}`,
    `system_prompt="…"`, `max_cost=5`.

        result = evaluate([{"user_query": "2+2?", "ground_truth_for_eval": "4"}], my_reward, model="local", n=4)
        print(result.mean_score, result.summary["pass_at_k"])
    """
    given = reward if callable(reward) else None
    client = None if model is None or isinstance(model, str) else model
    name = client.model if client is not None else model
    directory = Path(output_dir) if output_dir is not None else Path(tempfile.mkdtemp(prefix="reward-kit-"))
    path, rows = (str(dataset), None) if isinstance(dataset, str | Path) else (None, dataset)
    config: dict[str, Any] = dict(settings)
    config["generation"] = {"enabled": model is not None, "model_name": name, "n": n, **config.get("generation", {})}
    config["reward"] = {
        "function_path": _label(reward), "params": dict(params or {}), **(reward_settings or {})
    }  # fmt: skip
    config["output"] = {**config.get("output", {}), "output_dir": str(directory)}
    if path is not None:
        config["dataset"] = {**config.get("dataset", {}), "path_or_name": path}
    result = EvaluationPipeline(load_config(config), reward=given, samples=rows, client=client).run()
    if invalid := result.counters.invalid:
        _log.warning("%s", about_invalid(invalid))
    return result


def _label(reward: Callable[..., Any] | str) -> str:
    """How the config names the reward: by its path, or by where a function that was given came from."""
    return reward if isinstance(reward, str) else f"{reward.__module__}:{name_of(reward)}"


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
    `trl grpo` (or `rloo`) on this machine, which goes on when this process ends; another is given as an object or by
    the import path of something that makes one. All other keywords are settings of the trainer.

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
    made: JobBackend = load_function(given)()
    return made
