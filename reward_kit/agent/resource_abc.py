# SPDX-License-Identifier: Apache-2.0
"""ForkableResource: a world by the interface of the older package, with actions that are told by name.

    setup(config) ─▶ step · step · … ─▶ close
                       │
                       ├─▶ fork()                    an independent resource in the same state
                       ├─▶ checkpoint() · restore()  back to a state of before, in this process
                       └─▶ snapshot() · restore()    the same as bytes, which outlive the process

This class is what lies between the two: whoever writes these methods has a `World`, whose tools are the actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from reward_kit.agent.environment import Answer, Durability, World
from reward_kit.agent.tool_registry import ToolRegistry
from reward_kit.errors import EnvironmentFailure, boundary
from reward_kit.models import Message, Sample

__all__ = ["ForkableResource"]


class ForkableResource(World, ABC):
    """Something that an agent acts on, such as a database, with its actions. A fork shares nothing with its
    original."""

    durability: ClassVar[Durability] = "restart"
    """How it is had again after a crash. One that can only begin anew says `restart`, one whose actions can be done
    again `replay`. Whoever writes `snapshot` may say that, too."""

    reading: ClassVar[frozenset[str]] = frozenset()
    """Actions that change nothing."""

    sample: Sample
    """Which sample's episode it is the world of."""
    _registry: ToolRegistry | None = None
    _offers_actions = True

    @abstractmethod
    async def setup(self, config: dict[str, Any]) -> None:
        """Bring it into its first state."""

    @abstractmethod
    async def fork(self) -> ForkableResource:
        """A new resource in the state that this one is in now. Neither notices what is done to the other."""

    @abstractmethod
    async def checkpoint(self) -> Any:
        """The present state, to be given to `restore`. What it names may be gone once the resource is closed."""

    @abstractmethod
    async def restore(self, state_data: Any) -> None:
        """Go back to a state that `checkpoint` gave, or that is in the bytes of a `snapshot`."""

    @abstractmethod
    async def step(self, action_name: str, action_params: dict[str, Any]) -> Any:
        """Do an action and return what came of it. What the action got wrong is raised."""

    @abstractmethod
    async def get_observation(self) -> Any:
        """What can be seen of its state."""

    @abstractmethod
    async def get_tools_spec(self) -> list[dict[str, Any]]:
        """The actions as tools of a model, in the shape of OpenAI's `tools`."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything and leave nothing behind. May be called twice."""

    async def describe(self) -> Any:
        """What a model or a reward is shown of the state: JSON, and equal for equal states."""
        return await self.get_observation()

    async def is_over(self) -> bool:
        """Whether nothing more can be done."""
        return False

    # ── as a world ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def resource(self) -> Self:
        """Itself, as rewards find it in whatever world they are given."""
        return self

    async def begin(self, sample: Sample, registry: ToolRegistry | None = None, *, actions: bool = True) -> Self:
        """Be the world of an episode, with the tools of a registry beside the actions, or instead of them.

        A resource that cannot tell its tools is closed.
        """
        self.sample, self._registry, self._offers_actions = sample, registry, actions
        try:
            with boundary(EnvironmentFailure, f"The tools of {type(self).__name__}"):
                await self._find_tools()
        except BaseException:
            await self.close()
            raise
        return self

    async def answer(self, message: Message) -> Answer:
        """What the calls came to. The episode is over when there are none, or when the resource says so."""
        replies = await self.use_tools(message)
        over = await self.is_over()
        await self._find_tools()
        return Answer(replies, done=over or not message.tool_calls)

    async def facts(self) -> dict[str, Any]:
        """The state of the resource in the end."""
        return {"state": await self.describe()}

    async def _find_tools(self) -> None:
        """Ask again what can be done: that may depend on the state."""
        from reward_kit.agent.resource_tools import registry_tools, resource_tools

        own = await resource_tools(self) if self._offers_actions else []
        more = [] if self._registry is None else registry_tools(self._registry, self)
        names = {tool.name for tool in more}
        self._tools = [*(tool for tool in own if tool.name not in names), *more]

    async def __aenter__(self) -> Self:
        """The resource itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
