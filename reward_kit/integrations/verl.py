# SPDX-License-Identifier: Apache-2.0
"""A reward as verl calls it: `compute_score(data_source, solution_str, ground_truth, …)`. verl is not imported.

    write_compute_score("my_rewards:correct", "compute_score.py", failed_score=0.0)

    python -m verl.trainer.main_ppo reward.custom_reward_function.path=compute_score.py \\
        reward.custom_reward_function.name=compute_score ...

verl loads the function from a file, once in each of its reward workers. It knows no "not judged", so the score of such
a completion is asked for; `judged` among the extras says how many there were.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_kit.integrations.attempts import attempt, known_to
from reward_kit.integrations.shim import write_shim
from reward_kit.integrations.trainer_reward import TrainerReward

__all__ = ["compute_score_for", "write_compute_score"]


def compute_score_for(
    reward: Callable[..., Any] | str,
    *,
    failed_score: float | None,
    metrics: Sequence[str] = (),
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> Callable[..., Coroutine[Any, Any, dict[str, float]]]:
    """The `compute_score` that asks a pointwise reward (or its import path).

    What `extra_info` holds reaches the reward by name, with `data_source`; its `prompt`, a text or a list of messages,
    is what was asked. `metrics` names those of the reward's metrics that verl shall log: it wants the same ones of
    every sample, so one that a sample lacks is NaN. The options are those of `Scoring`.
    """
    judge = TrainerReward(reward, failed_score=failed_score, params=params, **options)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> dict[str, float]:
        info = {**(extra_info or {}), "data_source": data_source, "ground_truth": ground_truth}
        prompt = info.get("prompt") or []
        columns, objects = known_to(judge.call, {**info, **given})
        (earned,) = await judge.judge_async([attempt(columns, prompt, solution_str, objects)])
        logged = {name: earned.metrics.get(name, float("nan")) for name in metrics}
        return {**logged, "score": earned.score, "judged": float(earned.error is None)}

    return compute_score


def write_compute_score(
    reward: str, file: str | Path, *, failed_score: float | None, metrics: Sequence[str] = (), **options: Any
) -> Path:
    """Write the file that verl's `reward.custom_reward_function.path` names; its function is `compute_score`."""
    return write_shim(
        file,
        f"verl's compute_score for {reward}",
        "reward_kit.integrations.verl:compute_score_for",
        "compute_score",
        [reward],
        {"failed_score": failed_score, "metrics": list(metrics), **options},
    )
