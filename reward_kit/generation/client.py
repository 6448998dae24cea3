# SPDX-License-Identifier: Apache-2.0
"""The contract that every model meets: an endpoint, the embedded model, the mock, and each layer around one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from reward_kit.config_models import Sampling
from reward_kit.models import Completion, Failure, Message

__all__ = ["LimitedEndpoint", "ModelClient", "TellsModel", "model_facts_of"]


@runtime_checkable
class ModelClient(Protocol):
    """Anything that answers prompts: an endpoint, a model in this process, a mock, or a layer around one of these."""

    @property
    def model(self) -> str:
        """The model's name, as it is written into rollouts and looked up in the table of prices."""
        ...

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an answer beside messages, tools, sampling and draw; part of each cache key."""
        ...

    async def generate(
        self,
        messages: Sequence[Message],
        *,
        draws: Sequence[int],
        sampling: Sampling,
        tools: list[dict[str, Any]] | None = None,
        sample_id: str = "",
    ) -> list[Completion | Failure]:
        """One entry for each of `draws`, in their order. What no further request can mend is raised instead."""
        ...

    async def close(self) -> None:
        """Give up connections and other resources; the client may be used again afterwards."""
        ...


@runtime_checkable
class LimitedEndpoint(Protocol):
    """A client of an endpoint that may take fewer draws per request, or fewer parameters, than it is sent."""

    @property
    def draws_at_once(self) -> int:
        """How many draws one request may ask for, as far as is known by now."""
        ...

    @property
    def dropped_parameters(self) -> Mapping[str, str]:
        """Parameters the endpoint refused, with its reason; filled as it refuses them."""
        ...


@runtime_checkable
class TellsModel(Protocol):
    """A client whose server may say which model it has under a name."""

    async def model_facts(self) -> Mapping[str, Any]:
        """What the server says that tells the model from others of its name; empty where it says nothing."""
        ...


async def model_facts_of(client: ModelClient) -> Mapping[str, Any]:
    """What the server of a client says of its model; empty where there is no server, or it says nothing."""
    return await client.model_facts() if isinstance(client, TellsModel) else {}
