# SPDX-License-Identifier: Apache-2.0
"""The model as a run sees it: a play over cache ∘ budget ∘ client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from reward_kit.config_models import PipelineConfig, Price
from reward_kit.generation.budget import Budget, within
from reward_kit.generation.cache.responses import CachedClient, Earlier, cached
from reward_kit.generation.client import LimitedEndpoint, ModelClient
from reward_kit.generation.factory import make_client
from reward_kit.generation.play import Play, SingleTurn
from reward_kit.generation.prices import price_for, price_of

__all__ = ["ModelStack", "open_models"]


_ANY_NUMBER = 1 << 30


@dataclass(frozen=True)
class ModelStack:
    """What the generate stage plays with."""

    play: Play | None = None
    """None when nothing is to be generated."""
    client: ModelClient | None = None
    """What the play asks: the client in its layers."""
    price: Price | None = None
    """What the model's tokens cost, where that is known."""
    draws_at_once: Callable[[], int] = lambda: _ANY_NUMBER
    """How many draws of a sample one request may ask for; more are asked for apart, and each is kept as it comes."""
    dropped_parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters the endpoint refused, with its reason; filled as it refuses them."""
    earlier: Callable[[], Earlier | None] = lambda: None
    """Of the answers that came from the cache, those that were not made since the run was entered."""


@contextlib.asynccontextmanager
async def open_models(
    config: PipelineConfig, client: ModelClient | None, budget: Budget | None
) -> AsyncIterator[ModelStack]:
    """Make the client the config names (or take the one given), in its layers, and close it in the end."""
    generation = config.generation
    bare = client or make_client(generation)
    endpoint = bare if isinstance(bare, LimitedEndpoint) else None
    price = price_for(generation) if client is None else price_of(bare.model, generation.price)
    layered = within(budget, bare, price, "generation")
    with cached(layered, generation.cache) as layered:
        try:
            play = SingleTurn(layered, generation.sampling(), price)
            earlier = partial(_earlier, layered)
            if endpoint is None:
                yield ModelStack(play, layered, price, earlier=earlier)
            else:
                at_once, dropped = (lambda: endpoint.draws_at_once), endpoint.dropped_parameters
                yield ModelStack(play, layered, price, at_once, dropped, earlier)
        finally:
            await layered.close()


def _earlier(client: ModelClient) -> Earlier | None:
    return client.cache.earlier if isinstance(client, CachedClient) else None
