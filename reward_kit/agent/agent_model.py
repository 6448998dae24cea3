# SPDX-License-Identifier: Apache-2.0
"""The model that the inherited agent commands name: `--model`, or the environment variable MODEL_AGENT."""

from __future__ import annotations

import os
from typing import Any

from reward_kit.errors import ConfigError

__all__ = ["model_settings"]


def model_settings(named: str | None = None) -> dict[str, Any]:
    """The settings of a run's `generation` for a model's inherited name.

    `openai/NAME` and `fireworks/NAME` say where the model is; `accounts/fireworks/…`, `mock`, `local` and all other
    names mean what they mean in a run.
    """
    name = named or os.environ.get("MODEL_AGENT")
    if not name:
        raise ConfigError("No model is named. Give one with --model, or in the environment variable MODEL_AGENT.")
    provider, slash, rest = name.partition("/")
    if slash and provider == "openai" and rest:
        return {"model_name": rest, "api_base": "https://api.openai.com/v1"}
    if slash and provider == "fireworks" and rest:
        return {"model_name": rest if rest.startswith("accounts/") else f"accounts/fireworks/models/{rest}"}
    return {"model_name": name}
