# SPDX-License-Identifier: Apache-2.0
"""What the clients of a run have in common: their limits, their money, and the answers they have paid for.

In one process that is simple, and nothing here is set: each client has limits of its own and opens the cache's file.
Where an engine spreads a run over many processes, it sets `Commons` in each of them, and their clients then share one
rate, one ceiling of requests in flight, and one cache.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from reward_kit.config_models import ApiParamsConfig, CacheConfig
    from reward_kit.generation.client import ModelClient
    from reward_kit.http.retry import Patience
    from reward_kit.models import Usage

__all__ = ["PURSE", "Commons", "Limits", "Purse", "commons", "share"]


class Limits(Protocol):
    """What a client asks before each request, and tells after it."""

    @property
    def patience(self) -> Patience:
        """How long the endpoint is waited for while it is busy."""
        ...

    @property
    def counts_tokens(self) -> bool:
        """Whether an estimate of tokens is of any use."""
        ...

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        ...

    @property
    def in_flight(self) -> int:
        """How many requests hold a slot now."""
        ...

    async def enter(self, tokens: float) -> int:
        """Wait until one more request may be sent; pair with `leave`. Returns a mark to hand to `failed`."""
        ...

    def leave(self) -> None:
        """The request is over, however it ended."""
        ...

    def answered(self, tokens: float, used: float | None) -> None:
        """The endpoint answered; `used` tokens, where it tells."""
        ...

    def failed(self, error: Any, mark: int, tokens: float) -> None:
        """The endpoint complained, or did not answer."""
        ...


class Purse(Protocol):
    """What is set apart for one call of a client, as far as whoever sends its requests must know of it."""

    def most(self, draws: int) -> Usage:
        """What is set apart for so many draws."""
        ...

    def lose(self, usage: Usage) -> None:
        """Count at once what a reply used that is no answer, or not all of them."""
        ...

    def give_back(self, draws: int) -> None:
        """Set nothing apart any more for so many draws: they came, and what they used is counted."""
        ...

    async def may_go_on(self) -> bool:
        """Whether there is money to ask again."""
        ...


PURSE: ContextVar[Purse | None] = ContextVar("PURSE", default=None)
"""Of the call that is being made; None where there is no limit on its cost."""


class Commons(Protocol):
    """What stands in for limits and caches of one process."""

    def limits(self, endpoint: str, params: ApiParamsConfig) -> Limits:
        """The limits of the clients that ask this endpoint with these parameters."""
        ...

    def cached(self, client: ModelClient, cache: CacheConfig) -> AbstractContextManager[ModelClient]:
        """The client behind the cache that the settings name."""
        ...


_shared: Commons | None = None


def share(shared: Commons | None) -> None:
    """Have all clients that are made from now on in this process use `shared`; None: each its own again."""
    global _shared  # noqa: PLW0603 - it belongs to the process, which is an engine's from its first to its last moment
    _shared = shared


def commons() -> Commons | None:
    """What an engine has set for this process, where it has."""
    return _shared
