# SPDX-License-Identifier: Apache-2.0
"""Resources as environments: every episode has a fork of one resource, and its actions and tools.

    agent:
      environment: reward_kit.agent.resource_environment:ResourceEnvironment
      params:
        resource: SQLResource
        config: {schema_file: schema.sql, seed_data_file: data.sql}
        tools: my_tools.py:tools          # a ToolRegistry, if the resource's own actions are not to be all

The resource is set up once. A fork costs little, and no episode sees what another did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from reward_kit.agent import resources
from reward_kit.agent.environment import Environment, World
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resource_tools import load_registry
from reward_kit.agent.tool_registry import ToolRegistry
from reward_kit.errors import ConfigError, EnvironmentFailure, boundary
from reward_kit.models import Sample
from reward_kit.utils.module_loader import load_object

__all__ = ["ResourceEnvironment", "resource_class"]

_KNOWN = {name: f"{resources.__name__}:{name}" for name in resources.__all__}
_KNOWN["http_rollout"] = _KNOWN["HttpRolloutResource"]


def resource_class(named: str | type[ForkableResource]) -> type[ForkableResource]:
    """The class of a resource by its name, or by the import path of one of your own."""
    if isinstance(named, type):
        return named
    if named not in _KNOWN and "." not in named and ":" not in named:
        raise ConfigError(
            f"There is no resource {named!r}; there are {', '.join(_KNOWN)}. Or give the import path of your own."
        )
    try:
        found = load_object(_KNOWN.get(named, named))
    except ImportError as error:
        raise ConfigError(f"The resource {named!r} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, ForkableResource)):
        raise ConfigError(f"{named!r} is not a class derived from ForkableResource. Name such a class.")
    return found


class ResourceEnvironment(Environment):
    """Opens worlds that are forks of one resource."""

    def __init__(
        self,
        resource: str | type[ForkableResource],
        config: Mapping[str, Any] | None = None,
        *,
        tools: str | ToolRegistry | None = None,
        actions: bool = True,
    ) -> None:
        """Take the resource's name, import path or class, and its config.

        `tools` is a registry, or a path to one. With `actions` off, only its tools are offered, and not the actions of
        the resource itself.
        """
        self._kind = resource_class(resource)
        self._config = dict(config or {})
        self._registry = load_registry(tools) if isinstance(tools, str) else tools
        self._actions = actions
        self._base: ForkableResource | None = None
        self._setting_up = asyncio.Lock()
        if not actions and self._registry is None:
            raise ConfigError("A world with `actions` off needs `tools`. Name a ToolRegistry.")

    async def open(self, sample: Sample) -> World:
        """A fork of its own, which is a world."""
        return await (await self.fork()).begin(sample, self._registry, actions=self._actions)

    async def fork(self) -> ForkableResource:
        """A fork of the resource, which is set up first by whoever asks first."""
        with boundary(EnvironmentFailure, f"The resource {self._kind.__name__!r}"):
            async with self._setting_up:
                if self._base is None:
                    base = self._kind()
                    try:
                        await base.setup(self._config)
                    except BaseException:
                        await base.close()
                        raise
                    self._base = base
            return await self._base.fork()

    async def close(self) -> None:
        """Close the resource that was forked."""
        base, self._base = self._base, None
        if base is not None:
            await base.close()
