# SPDX-License-Identifier: Apache-2.0
"""The process of one trial: an order on standard input, a verdict on standard output. See `trial`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from reward_kit.config_models import RewardConfig, load_config
from reward_kit.errors import RewardKitError
from reward_kit.models import EvaluateResult, Rollout
from reward_kit.redaction import mask, remember_environment
from reward_kit.scoring.rewards import Reward
from reward_kit.scoring.scorers import open_scorer
from reward_kit.storage.tables import metrics_of
from reward_kit.utils import exact_json
from reward_kit.utils.event_loop import run_sync

__all__ = ["main"]


def main() -> None:
    """Judge what the order says, and print what came of it. What the reward prints goes to standard error."""
    remember_environment()
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        order = exact_json.loads(sys.stdin.buffer.read())
        try:
            found = run_sync(lambda: _judged(order))
        except (RewardKitError, yaml.YAMLError, ImportError, OSError) as error:
            found = _trial_result(failure=mask(str(error)))
        answer.write(orjson.dumps(found))


async def _judged(order: Mapping[str, Any]) -> dict[str, Any]:
    values = yaml.safe_load(order["config"])
    config = load_config(values)
    rollouts = [Rollout.model_validate(one) for one in order["rollouts"]]
    (wanted,) = (place for place, one in enumerate(rollouts) if one.response_index == order["index"])
    settings = config.reward.for_split(rollouts[0].sample.split)
    reward = Reward(_alone(settings))
    asked = rollouts if reward.judges_groups else [rollouts[wanted]]
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


if __name__ == "__main__":
    main()
