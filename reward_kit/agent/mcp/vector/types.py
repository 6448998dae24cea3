# SPDX-License-Identifier: Apache-2.0
"""What moves in a rollout over MCP environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["DatasetRow", "MCPSession", "MCPToolCall", "Trajectory"]


@dataclass
class MCPToolCall:
    """What a policy wants to be called. `_no_tool_call` and `_playback_terminate` end the episode."""

    tool_name: str
    arguments: dict[str, Any]


@dataclass
class DatasetRow:
    """One task: how it begins, and what the model is told."""

    id: str
    seed: int | None
    system_prompt: str
    user_prompt_template: str
    environment_context: dict[str, Any]


@dataclass
class MCPSession:
    """One environment: which server, which task, and where it stands."""

    session_id: str
    base_url: str
    seed: int | None
    model_id: str
    dataset_row: DatasetRow | None = None
    terminated: bool = False
    last_observation: Any = None
    _exit_stack: Any | None = None
    _mcp_session: Any | None = None


@dataclass
class Trajectory:
    """What happened in one environment."""

    session: MCPSession
    observations: list[Any]
    actions: list[str]
    rewards: list[float]
    terminated: bool
    total_reward: float
    """Not a number where the environment or the model failed: that is no score."""
    steps: int
    duration: float
    error: str | None = None
    """Why there is no score, where there is none."""
    control_plane_steps: list[dict[str, Any]] = field(default_factory=list)
    control_plane_summary: dict[str, Any] = field(default_factory=dict)
