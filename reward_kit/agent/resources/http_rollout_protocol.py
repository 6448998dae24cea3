# SPDX-License-Identifier: Apache-2.0
"""What is said between an `HttpRolloutResource` and its server, and where the server is."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = [
    "EndEpisodeRequest",
    "EndEpisodeResponse",
    "GameObservation",
    "HealthResponse",
    "HttpRolloutConfig",
    "StartEpisodeRequest",
    "StartEpisodeResponse",
    "StepRequest",
    "StepResponse",
]


class StartEpisodeRequest(BaseModel):
    """Begin an episode; whatever else a server wants to know, such as a seed, comes as fields of any name."""

    model_config = ConfigDict(extra="allow")


class StartEpisodeResponse(BaseModel):
    """An episode has begun."""

    episode_id: str
    observation: dict[str, Any]


class StepRequest(BaseModel):
    """Act in an episode."""

    episode_id: str
    action: Any


class StepResponse(BaseModel):
    """What came of an action."""

    observation: dict[str, Any]
    is_done: bool
    info: dict[str, Any] | None = None


class EndEpisodeRequest(BaseModel):
    """End an episode."""

    episode_id: str


class EndEpisodeResponse(BaseModel):
    """An episode has ended."""

    message: str


class HealthResponse(BaseModel):
    """Whether a server is well."""

    status: str
    game: str | None = None
    version: str | None = None


class HttpRolloutConfig(BaseModel):
    """Where the server is, and what its actions are."""

    base_url: str
    start_episode_endpoint: str = "/start_episode"
    step_endpoint: str = "/step"
    end_episode_endpoint: str = "/end_episode"
    health_endpoint: str = "/health"
    timeout: float = 30.0
    max_retries: int = 3
    """How often a request that did not reach the server is sent again."""
    start_params: dict[str, Any] = {}
    """Ours: what is sent with the request for an episode, such as a seed."""
    tools: list[dict[str, Any]] | None = None
    """Ours: the tools that a model is told of; each becomes a step. None: one tool `step` with `action`."""
    action_map: dict[str, Any] = {}
    """Ours: what the server is sent for an action, where that is not the action itself, such as 0 for `left`."""
    prompt: str | None = None
    """Ours: what a model is told before it is shown the first observation."""


class GameObservation(BaseModel):
    """What the server of a board game may show."""

    position: list[int] | None = None
    current_cell: str | None = None
    done: bool = False
    won: bool = False
    visual: str | None = None
    message: str | None = None
    step_count: int | None = None
    max_steps: int | None = None
