# SPDX-License-Identifier: Apache-2.0
"""What judges in the process of a trial. See `trial`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import yaml

from reward_kit.config_models import RewardConfig, load_config
from reward_kit.errors import RewardKitError
from reward_kit.models import EvaluateResult, Rollout
from reward_kit.redaction import mask, remember_environment
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import open_scorer
from reward_kit.storage.tables import metrics_of
from reward_kit.utils.event_loop import run_sync

__all__ = ["judge_of_trials"]


def judge_of_trials() -> Callable[[str, Sequence[Rollout], int], dict[str, Any]]:
    """What judges: of a run's config, a sample's rollouts and the number of one, what came of that."""
    remember_environment()

    def judge(config: str, rollouts: Sequence[Rollout], index: int) -> dict[str, Any]:
        try:
            return run_sync(lambda: _judged(config, rollouts, index))
        except (RewardKitError, yaml.YAMLError, ImportError, OSError) as error:
            return _trial_result(failure=mask(str(error)))

    return judge


async def _judged(text: str, rollouts: Sequence[Rollout], index: int) -> dict[str, Any]:
    config = load_config(yaml.safe_load(text))
    (wanted,) = (place for place, one in enumerate(rollouts) if one.response_index == index)
    settings = config.reward.for_split(rollouts[0].sample.split)
    reward = Reward(_alone(settings))
    asked = [*rollouts] if reward.judges_groups else [rollouts[wanted]]
    async with open_scorer(reward, None, config.sandbox, config.judge, agent=config.agent) as scorer:
        verdicts = await scorer.score(asked)
    verdict = verdicts[wanted if reward.judges_groups else 0]
    if not isinstance(verdict, EvaluateResult):
        return _trial_result(failure=f"{verdict.type}: {verdict.message}")
    metrics = [
        {"name": name, "score": one["score"], "valid": one["is_score_valid"], "reason": one["reason"] or ""}
        for name, one in metrics_of(verdict).items()
    ]
    passed = verdict.score >= settings.pass_threshold
    return _trial_result(score=verdict.score, passed=passed, reason=verdict.reason or "", metrics=metrics)


def _alone(config: RewardConfig) -> RewardConfig:
    """One answer needs one worker."""
    return config.model_copy(update={"workers": 1, "by_split": {}})


def _trial_result(**found: Any) -> dict[str, Any]:
    return {"score": None, "passed": None, "reason": "", "metrics": [], "failure": None} | found
