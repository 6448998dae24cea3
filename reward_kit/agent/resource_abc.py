# SPDX-License-Identifier: Apache-2.0
"""What every resource is: a piece of the world that an agent acts on, and that can be copied.

    setup(config) ─▶ step · step · … ─▶ close
                       │
                       ├─▶ fork()                    an independent resource in the same state
                       ├─▶ checkpoint() · restore()  back to a state of before, in this process
                       └─▶ export() · load()         the same as bytes, which outlive the process

What a resource can do is said by its `durability`, so that nobody finds out in the middle of an episode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

__all__ = ["Durability", "ForkableResource"]

Durability = Literal["export", "restart", "stateless"]
"""`export`: its whole state can be written down and read again. `restart`: it can only begin anew, so its actions must
be done again. `stateless`: nothing that is done to it lasts."""


class ForkableResource(ABC):
    """Something that an agent acts on, such as a database, with its actions. A fork shares nothing with its
    original."""

    durability: ClassVar[Durability] = "restart"
    """What can be done with its state; see `Durability`."""

    speaks_first: ClassVar[bool] = False
    """Whether `begin_episode` shows the model something, so that nobody else need say anything."""
    reading: ClassVar[frozenset[str]] = frozenset()
    """Actions that change nothing."""

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
        """Go back to a state that `checkpoint` gave."""

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

    async def begin_episode(self, data: Mapping[str, Any]) -> str | None:
        """Called once before the first action, with the columns of the sample; what a model is shown, if anything."""
        return None

    async def is_over(self) -> bool:
        """Whether nothing more can be done."""
        return False

    async def export(self) -> bytes:
        """The whole state as bytes, which another process can `load`. Only where `durability` is `export`."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot export its state: its durability is {self.durability!r}"
        )

    async def load(self, state: bytes) -> None:
        """Take over a state that `export` wrote. Only where `durability` is `export`."""
        raise NotImplementedError(f"{type(self).__name__} cannot load a state: its durability is {self.durability!r}")

    async def __aenter__(self) -> Self:
        """The resource itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()
