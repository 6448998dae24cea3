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
from typing import Any, ClassVar

from reward_kit.agent.environment import Answer, Durability, Environment, World
from reward_kit.agent.resource_abc import ForkableResource
from reward_kit.agent.resource_tools import load_registry, registry_tools, resource_tools
from reward_kit.agent.tool_registry import ToolRegistry
from reward_kit.errors import ConfigError, EnvironmentFailure, boundary
from reward_kit.models import Message, Sample
from reward_kit.utils.module_loader import load_object

__all__ = ["ResourceEnvironment", "ResourceWorld", "resource_class", "world_of"]

_RESOURCES = "reward_kit.agent.resources"
_KNOWN = {
    "BFCLSimAPIResource": f"{_RESOURCES}.bfcl_sim_api_resource:BFCLSimAPIResource",
    "DockerResource": f"{_RESOURCES}.docker_resource:DockerResource",
    "FileSystemResource": f"{_RESOURCES}.filesystem_resource:FileSystemResource",
    "HttpRolloutResource": f"{_RESOURCES}.http_rollout_resource:HttpRolloutResource",
    "PythonStateResource": f"{_RESOURCES}.python_state_resource:PythonStateResource",
    "SQLResource": f"{_RESOURCES}.sql_resource:SQLResource",
    "http_rollout": f"{_RESOURCES}.http_rollout_resource:HttpRolloutResource",
}


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
        """A world with a fork of its own."""
        return await world_of(ResourceWorld, await self.fork(), self._registry, actions=self._actions, sample=sample)

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


class ResourceWorld(World):
    """One episode's own resource. Made by `world_of`, which asks the resource for its tools."""

    def __init__(
        self, resource: ForkableResource, registry: ToolRegistry | None, *, actions: bool, sample: Sample
    ) -> None:
        """Take a resource that nobody else uses; it is closed with the world."""
        self.resource = resource
        self.sample = sample
        self._registry = registry
        self._actions = actions

    async def start(self) -> Any:
        """What the resource shows first, where it shows anything: an HTTP server its first observation."""
        shown = await self.resource.begin_episode(self.sample.columns)
        return () if shown is None else [Message(role="user", content=shown)]

    async def answer(self, message: Message) -> Answer:
        """What the calls came to. The episode is over when there are none, or when the resource says so."""
        replies = await self.use_tools(message)
        over = await self.resource.is_over()
        await self.refresh_tools()
        return Answer(replies, done=over or not message.tool_calls)

    async def facts(self) -> dict[str, Any]:
        """The state of the resource in the end."""
        return {"state": await self.resource.describe()}

    async def close(self) -> None:
        """Close the resource."""
        await self.resource.close()

    async def snapshot(self) -> bytes:
        """The state of the resource, where it can be written down."""
        return await self.resource.export()

    async def restore(self, state: bytes) -> None:
        """Take over a state that `snapshot` wrote."""
        await self.resource.load(state)

    async def refresh_tools(self) -> None:
        """Ask the resource again what can be done: that may depend on its state."""
        own = await resource_tools(self.resource) if self._actions else []
        more = [] if self._registry is None else registry_tools(self._registry, self.resource)
        names = [tool.name for tool in more]
        self._tools = [*(tool for tool in own if tool.name not in names), *more]


class RestartedWorld(ResourceWorld):
    """The world of a resource that can only begin anew."""

    durability: ClassVar[Durability] = "restart"


async def world_of(
    kind: type[ResourceWorld],
    resource: ForkableResource,
    registry: ToolRegistry | None = None,
    *,
    actions: bool = True,
    sample: Sample,
    **more: Any,
) -> ResourceWorld:
    """A world over `resource` that knows its tools, and says how it is had again after a crash."""
    if resource.durability == "restart" and kind is ResourceWorld:
        kind = RestartedWorld
    world = kind(resource, registry, actions=actions, sample=sample, **more)
    try:
        with boundary(EnvironmentFailure, f"The tools of {type(resource).__name__}"):
            await world.refresh_tools()
    except BaseException:
        await resource.close()
        raise
    return world
