# SPDX-License-Identifier: Apache-2.0
"""What can be known to be wrong with an agent's settings before any world is opened and any request is paid for."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from reward_kit.agent.environment import Environment, World
from reward_kit.agent.from_settings import named_by
from reward_kit.agent.tools import tool_of, tools_of_class
from reward_kit.config_models import AgentConfig
from reward_kit.errors import ConfigError
from reward_kit.typed_interface import signature_of

__all__ = ["check_agent"]


def check_agent(config: AgentConfig) -> None:
    """Raise a `ConfigError` where the class of worlds, its `params`, the `tools` or `stop_tools` cannot be right.

    What a function or an `Environment` will open is known only when it does.
    """
    named, *functions = named_by(config)
    if named is not None and callable(named) and not isinstance(named, Environment):
        _check_params(named, config)
    if isinstance(named, type) and not issubclass(named, Environment):
        _check_class(named, config)
    hidden = dict.fromkeys(("state", "sample") if named is None else ("state", "sample", "world"))
    offered = [tool_of(function, {**config.params, **hidden}).name for function in functions]
    _check_stop_tools(named, [*offered, *config.sandbox_tools], config)


def _check_params(named: Any, config: AgentConfig) -> None:
    """Whether it can be called as it will be: an environment with the params, all else with a sample before them."""
    is_environment = isinstance(named, type) and issubclass(named, Environment)
    before = () if is_environment else ("a sample",)
    try:
        signature = signature_of(named)
    except (TypeError, ValueError):  # some things in C do not tell theirs
        return
    try:
        signature.bind(*before, **config.params)
    except TypeError as error:
        raise ConfigError(
            f"`agent.environment` names {config.environment!r}, which takes {signature}; called with "
            f"{'a sample and ' if before else ''}`agent.params` it has {error}. Correct `agent.params`, or its "
            "parameters."
        ) from None


def _check_class(named: type, config: AgentConfig) -> None:
    if not issubclass(named, World):
        raise ConfigError(
            f"`agent.environment` names {config.environment!r}, a class that is neither a `World` nor an "
            "`Environment`. Derive it from `reward_kit.agent.World`."
        )
    if (config.durability or named.durability) != "snapshot":
        return
    for method in ("snapshot", "restore"):
        if inspect.getattr_static(named, method) is inspect.getattr_static(World, method):
            raise ConfigError(
                f"{named.__name__} is to be restored from snapshots (`durability: snapshot`), but has no method "
                f"`{method}`. Write it, or choose another `agent.durability`."
            )


def _check_stop_tools(named: Any, known: list[str], config: AgentConfig) -> None:
    """Whether the tools that end an episode are there, where that can be told; these are, beside those of the world."""
    if named is not None:
        is_plain = isinstance(named, type) and issubclass(named, World) and named.tools is World.tools
        if not is_plain:
            return  # its tools are known only when a world is open, and may change
        known += [tool.name for tool in tools_of_class(named)]
    for name in config.stop_tools:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(sorted(known)) or 'none'}."
            raise ConfigError(f"`agent.stop_tools` names {name!r}, and the agent has no such tool. {meant}")
