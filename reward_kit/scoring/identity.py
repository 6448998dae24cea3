# SPDX-License-Identifier: Apache-2.0
"""What a reward's results depend on, beside the rollouts: for a run's digest, and for what a server says of it."""

from __future__ import annotations

from typing import Any

from reward_kit.config_models import JudgeConfig, ModelConfig, SandboxConfig
from reward_kit.redaction import without_secrets
from reward_kit.scoring.rewards import Reward

__all__ = ["model_settings", "reward_settings"]


def reward_settings(reward: Reward, sandbox: SandboxConfig, judge: JudgeConfig) -> dict[str, Any]:
    """Of one reward: its name, its source, its parameters, its sandbox and its judge."""
    bounds = {}
    if reward.isolated_with:
        bounds = sandbox.model_dump(include={"image", "setup_join", "timeout", "network"})
        if sandbox.backend != "auto":
            bounds["backend"] = sandbox.backend  # another one may have other programs installed
    judging = _judge_settings(judge) if reward.call.wants("judge") else {}
    return {
        **{f"sandbox.{name}": value for name, value in bounds.items()},
        **{f"judge.{name}": value for name, value in judging.items()},
        **without_secrets(reward.identity),
        **({} if reward.config.invalid == "failure" else {"reward.invalid": reward.config.invalid}),
    }


def _judge_settings(judge: JudgeConfig) -> dict[str, Any]:
    return model_settings(judge) | ({} if judge.api == "chat" else {"api": judge.api})


def model_settings(model: ModelConfig) -> dict[str, Any]:
    """Of a model that is asked: which it is, where it answers, and how its tokens are drawn."""
    settings: dict[str, Any] = {
        "model_name": model.model_name,
        "api_base": model.api_base,
        **model.sampling().given(),
    }
    if model.model_name == "mock":
        settings["mock"] = model.mock.model_dump(exclude=None if model.mock.script else {"script"})
    kept: dict[str, Any] = without_secrets(settings)
    return kept
