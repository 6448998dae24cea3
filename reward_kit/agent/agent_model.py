# SPDX-License-Identifier: Apache-2.0
"""The model that the inherited agent commands name: `--model`, or the environment variable MODEL_AGENT."""

from __future__ import annotations

import os
from typing import Any

from reward_kit.errors import ConfigError

__all__ = ["model_settings"]


def model_settings(named: str | None = None) -> dict[str, Any]:
    """The settings of a run's `generation` for a model's inherited name.

    Every name means what it means in a run: the prefix of a provider (`openai/NAME`), `accounts/…`, `mock`, `local`.
    """
    name = named or os.environ.get("MODEL_AGENT")
    if not name:
        raise ConfigError("No model is named. Give one with --model, or in the environment variable MODEL_AGENT.")
    return {"model_name": name}
