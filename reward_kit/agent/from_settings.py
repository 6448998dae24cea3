# SPDX-License-Identifier: Apache-2.0
"""The environment that the settings of a run name."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from reward_kit.agent.environment import Environment, environment_of, finished
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError
from reward_kit.redaction import without_secrets
from reward_kit.utils.module_loader import load_function, load_object
from reward_kit.utils.source_digest import source_digest

__all__ = ["environment_settings", "load_environment", "open_environment"]


@contextlib.asynccontextmanager
async def open_environment(config: AgentConfig) -> AsyncIterator[Environment]:
    """The environment that the settings name, closed in the end."""
    environment = load_environment(config)
    try:
        yield environment
    finally:
        await finished(environment.close())


def load_environment(config: AgentConfig) -> Environment:
    """The environment that the settings name. One that cannot be loaded is a `ConfigError`."""
    named, *functions = _named(config)
    return environment_of(named, functions, config.params)


def environment_settings(config: AgentConfig) -> dict[str, Any]:
    """What the worlds depend on: what is named, its source, and what it is handed."""
    source = [source_digest(each) for each in _named(config) if each is not None]
    return {
        "environment": config.environment,
        "tools": config.tools,
        "params": without_secrets(config.params),
        "source": source,
    }


def _named(config: AgentConfig) -> list[Any]:
    """The environment, or None, and then the functions that are tools."""
    try:
        environment = None if config.environment is None else load_object(config.environment)
        return [environment, *(load_function(path) for path in config.tools)]
    except ImportError as error:
        raise ConfigError(f"The agent's environment cannot be loaded: {error}") from error
