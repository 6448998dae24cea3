# SPDX-License-Identifier: Apache-2.0
"""What a server is told about an environment that callers step through."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reward_kit.config_models import AgentConfig, StrictPart

__all__ = ["WorldsSettings"]


class WorldsSettings(StrictPart):
    """An environment that is served to be stepped through."""

    environment: str
    """Where it is: the import path of an environment, of a class of worlds, or of a function that opens one."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Handed to the environment by name."""
    reward: str | None = None
    """The name of a served reward that judges each episode in the end. Left out: the world's own rewards count."""
    agent: AgentConfig = AgentConfig()
    """Limits of an episode, by the names that they have in a run's `agent`: `max_turns`, `max_tool_calls` …"""
    sessions: int = Field(default=64, ge=1)
    """Open at a time. Beyond that, callers are told to come back."""
    idle_seconds: float = Field(default=600.0, gt=0)
    """That a session may wait for its next step."""
    longest_seconds: float = Field(default=3600.0, gt=0)
    """That a session may last."""
